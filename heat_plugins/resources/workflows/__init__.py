# SPDX-License-Identifier: Apache-2.0
"""What the types for Mistral's workflows are made of."""
