# SPDX-License-Identifier: Apache-2.0
"""What several rooms keep in the object store, and how they share it.

It imports neither Heat nor Mistral nor the command line.
"""
