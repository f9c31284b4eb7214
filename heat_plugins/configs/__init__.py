# SPDX-License-Identifier: Apache-2.0
"""Software configs: their actions, and their mistakes.

A config is taken as Heat stores it, plain maps and lists: ``group``,
``config``, ``inputs`` and ``outputs``. Nothing here imports Heat.
"""
