# SPDX-License-Identifier: Apache-2.0
"""What a server says while it is at a run.

A script may PUT JSON to the URL in its input ``deploy_progress_url``, as
often as it likes::

    {'progress': 40, 'message': 'dumping table 4 of 10'}
"""

import dataclasses

from heat_plugins import foreign
from heat_plugins import masking
from heat_plugins.signals import body

#: The most bytes of a report.
LIMIT = 16 * 1024

_MESSAGE = 200

_SIGNATURES = masking.Mask()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Report:
    """A report.

    :ivar progress: percent; None if it does not say.
    :ivar message: short, and on one line.
    """

    progress: float | None = None
    message: str | None = None


def parse(content: bytes, mask: masking.Mask = _SIGNATURES) -> Report:
    """Read a report; what cannot be used of it is left out.

    :param mask: masks secrets in its message.

    :raises errors.BadSignal: it is no JSON map.
    """
    details = body.parse(content)
    return Report(
        progress=_percent(details.get('progress')),
        message=_line(details.get('message'), mask),
    )


def _percent(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    # Before it becomes a float, which not every whole number can.
    return float(min(100, max(0, value)))


def _line(value: object, mask: masking.Mask) -> str | None:
    """Return a text as one line of limited length; None if it is none."""
    if not isinstance(value, str):
        return None
    said = ' '.join(mask.text(value).split())
    return foreign.line(said, _MESSAGE) or None
