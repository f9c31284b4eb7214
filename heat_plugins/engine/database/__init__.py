# SPDX-License-Identifier: Apache-2.0
"""Heat's tables of stacks and deployments, and our tables of runs."""
