# SPDX-License-Identifier: Apache-2.0
"""Starting runs: what asks for one, what it runs, and where."""
