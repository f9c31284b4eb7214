# SPDX-License-Identifier: Apache-2.0
"""Tests of the Heat resource types, one module for each."""
