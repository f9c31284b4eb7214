# SPDX-License-Identifier: Apache-2.0
"""Heat resource types, one module for each, named after it."""
