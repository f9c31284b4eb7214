# SPDX-License-Identifier: Apache-2.0
"""The parts of the bench that need no cloud."""
