# SPDX-License-Identifier: Apache-2.0
"""How many examples hypothesis makes up; see bad_input/conftest.py."""

import os


def number(most):
    """Return how many there are to be: a fifth of most, or that."""
    return most // 5 if os.environ.get('BAD_INPUT') == 'few' else most
