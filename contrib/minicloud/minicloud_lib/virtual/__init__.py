# SPDX-License-Identifier: Apache-2.0
"""Servers that are virtual machines, booted from an image of Debian's."""
