# SPDX-License-Identifier: Apache-2.0
"""The files of a plan: made, checked, chosen and changed."""
