# SPDX-License-Identifier: Apache-2.0
"""A stack's life as a chart of bars over time.

`chart_reading` reads it, from Heat's events and the stack's runs, into the
rows of `chart`, which folds each nested stack into one; `scales` lays time
out; `plain_text` and `svg` draw. `run_page` is the page of a run.
"""
