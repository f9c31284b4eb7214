# SPDX-License-Identifier: Apache-2.0
"""The records of runs, in the container of their root stack."""
