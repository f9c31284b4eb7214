# SPDX-License-Identifier: Apache-2.0
"""What becomes of runs: reports, results and time-outs."""
