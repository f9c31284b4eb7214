# SPDX-License-Identifier: Apache-2.0
"""Face: actions and workflows for Mistral. They import without Heat.

Mistral hands an action from its engine to its executors as what ``vars``
says of it, and makes it again there without ``__init__``: an action has its
arguments for attributes, and nothing else. `making` sees to that.
"""
