# SPDX-License-Identifier: Apache-2.0
"""Progress that the user sees."""

import sys


def say(text: str) -> None:
    """Progress goes to stderr: stdout is for what a program may read."""
    print(text, file=sys.stderr, flush=True)
