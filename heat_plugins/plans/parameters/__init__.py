# SPDX-License-Identifier: Apache-2.0
"""The parameters of a plan: read, checked, set, and kept secret."""
