# SPDX-License-Identifier: Apache-2.0
"""What the types for software configs and deployments are made of."""
