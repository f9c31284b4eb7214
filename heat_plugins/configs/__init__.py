# SPDX-License-Identifier: Apache-2.0
"""What a software config says: its actions, and what is wrong with it.

A config is taken as Heat stores it, plain maps and lists: ``group``,
``config``, ``inputs`` and ``outputs``. Nothing here imports Heat.
"""
