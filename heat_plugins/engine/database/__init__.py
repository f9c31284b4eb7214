# SPDX-License-Identifier: Apache-2.0
"""Heat's tables: rows of deployments, locks, and what servers are told."""
