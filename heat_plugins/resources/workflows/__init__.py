# SPDX-License-Identifier: Apache-2.0
"""Base classes and schemas of the types for Mistral."""
