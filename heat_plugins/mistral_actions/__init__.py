# SPDX-License-Identifier: Apache-2.0
"""Face: actions and workflows for Mistral. They import without Heat.

Mistral sends the ``vars`` of an action from its engine to its executors, and
recreates it there without ``__init__``: so the attributes of an action are its
arguments, see `making`.
"""
