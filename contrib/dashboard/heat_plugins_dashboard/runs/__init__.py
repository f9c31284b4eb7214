# SPDX-License-Identifier: Apache-2.0
"""The panel Runs: the list, one run, one target, and the form to start."""
