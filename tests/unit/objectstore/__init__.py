# SPDX-License-Identifier: Apache-2.0
"""Tests of what is kept in the object store, module by module."""
