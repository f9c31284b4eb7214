# SPDX-License-Identifier: Apache-2.0
"""Heat's tables: deployments, locks, what servers are told; and runs, ours."""
