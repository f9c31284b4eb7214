# SPDX-License-Identifier: Apache-2.0
"""What ends the demo early.

Surprise        something is not as the demo has announced it
+-- TooSlow     ... or not yet, and it has waited long enough
"""


class Surprise(Exception):
    """Something is not as it should be; the message says what."""


class TooSlow(Surprise):
    """Something has not happened in time."""


def require(true: object, otherwise: str) -> None:
    """Raise a surprise unless something is true.

    :param otherwise: what is the case if it is not.
    """
    if not true:
        raise Surprise(otherwise)
