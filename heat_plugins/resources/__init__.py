# SPDX-License-Identifier: Apache-2.0
"""Heat resource types; the rooms below have what several of them share."""
