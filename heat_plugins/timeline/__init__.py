# SPDX-License-Identifier: Apache-2.0
"""A stack's life as a chart of bars over time.

`looking` reads it, from Heat's events and the records of runs, into the rows
of `chart`; `folding` puts nested stacks into a row each; `scale` lays time
out; `text` and `svg` draw.
"""
