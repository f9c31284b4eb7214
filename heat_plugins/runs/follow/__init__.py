# SPDX-License-Identifier: Apache-2.0
"""Following runs: reports, results and time-outs."""
