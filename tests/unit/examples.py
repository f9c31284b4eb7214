# SPDX-License-Identifier: Apache-2.0
"""How long to search; see bad_input/conftest.py.

Under other Heats and Pythons than the newest ones hypothesis makes up a fifth
of the examples, and what may die at any request dies at each fifth.
"""

import os

_IS_SHORT = os.environ.get('BAD_INPUT') == 'few'

#: The requests from one at which a process dies to the next.
STEP = 5 if _IS_SHORT else 1


def number(most):
    """Return how many there are to be: a fifth of most, or that."""
    return most // 5 if _IS_SHORT else most
