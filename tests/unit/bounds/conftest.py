# SPDX-License-Identifier: Apache-2.0
"""Examples are made up as for the other bad input."""

from tests.unit.bad_input import conftest  # noqa: F401
