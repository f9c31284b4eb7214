# SPDX-License-Identifier: Apache-2.0
"""The configs that a server is given to run."""

from __future__ import annotations

import calendar
from collections.abc import Mapping
import dataclasses
import json
import re
import time
from typing import Any
from urllib import parse

from heat_config_supervisor import hidden
from heat_config_supervisor import masking
from heat_config_supervisor import places

# The supervisor stops a config this many seconds before its time is over, or
# this part of its time if that is less: the result must still be sent.
_MARGIN, _PART = 15.0, 0.25

# Bytes of output to keep if it does not say, and the most.
_LOG, _MOST_LOG = 10_000_000, 1_000_000_000

_FILE_NAME = re.compile(r'[0-9A-Za-z_-]+')


@dataclasses.dataclass(frozen=True)
class Config:
    """A config.

    :ivar created: when it was made, in seconds since the epoch by the clock
        of Heat; None if it does not say.
    :ivar inputs: value by name; passwords and signed URLs are among them.
    :ivar mask: masks the secrets in what it prints.
    :ivar outputs: the names of those that it declares.
    """

    id: str
    created: float | None
    inputs: Mapping[str, Any] = dataclasses.field(repr=False)
    mask: masking.Mask = dataclasses.field(repr=False)
    outputs: tuple[str, ...] = ()

    @property
    def signal_url(self) -> str | None:
        return self.inputs.get('deploy_signal_id') or None

    @property
    def signal_verb(self) -> str:
        verb = self.inputs.get('deploy_signal_verb')
        return 'PUT' if verb == 'PUT' else 'POST'

    @property
    def needs_notifier(self) -> bool:
        """Whether the result goes through Heat's API, or to a queue."""
        return bool(
            self.inputs.get('deploy_queue_id')
            or self.inputs.get('deploy_auth_url')
        )

    @property
    def is_signalled(self) -> bool:
        return bool(self.signal_url) or self.needs_notifier

    @property
    def has_object(self) -> bool:
        """Whether its result is one object that is for this config alone.

        The other ways to signal are the same for all that a deployment
        does, so a result that comes late may pass for that of another one.
        """
        return self.signal_verb == 'PUT' and not self.needs_notifier

    @property
    def expires(self) -> float | None:
        """When the URL for the result does, in seconds since the epoch."""
        query = parse.parse_qs(parse.urlsplit(self.signal_url or '').query)
        return _number(query.get('temp_url_expires', [None])[0])

    @property
    def progress_url(self) -> str | None:
        """Where to PUT a report that it has started."""
        return self.inputs.get('deploy_progress_url') or None

    @property
    def log_url(self) -> str | None:
        """The prefix below which to PUT its output."""
        return self.inputs.get('deploy_log_url') or None

    @property
    def log_limit(self) -> int:
        """How many bytes of that to keep."""
        limit = _number(self.inputs.get('deploy_log_limit'))
        if limit is None or not limit > 0:
            return _LOG
        return int(min(limit, _MOST_LOG))

    @property
    def control_url(self) -> str | None:
        """Where there is something if it must stop."""
        return self.inputs.get('deploy_control_url') or None

    @property
    def takes_reports(self) -> bool:
        """Whether a signal may be a report, and need not be the result.

        To an engine that does not say so any signal is the result.
        """
        return self.inputs.get('deploy_signal_reports') == 'true'

    def time_limit(self, now: float) -> float | None:
        """Return for how many seconds it may run; None for no limit."""
        limits = [places.time_limit(), self._time_left(now)]
        return min((limit for limit in limits if limit), default=None)

    def _time_left(self, now: float) -> float | None:
        given = _number(self.inputs.get('deploy_signal_timeout'))
        if not given or given < 0:
            return None
        if self.created is not None:
            left = self.created + given - now
            # Otherwise one of the clocks is wrong.
            if 0 < left < given:
                given = left
        return given - min(_MARGIN, given * _PART)


def read(content: bytes | str) -> Config:
    """Read a config as 55-heat-config hands it to a hook.

    :raises ValueError: it is none.
    """
    config = json.loads(content)
    try:
        inputs = {
            declared['name']: declared.get('value')
            for declared in config['inputs']
        }
        config_id = config['id']
        mask = hidden.mask(config['inputs'], config.get('options'))
        outputs = tuple(
            str(declared['name']) for declared in config.get('outputs') or ()
        )
    except (TypeError, KeyError, AttributeError) as exc:
        raise ValueError('it is not a config') from exc
    if not _FILE_NAME.fullmatch(str(config_id)):
        raise ValueError('its id cannot name a file')
    created = _time(config.get('creation_time'))
    return Config(str(config_id), created, inputs, mask, outputs)


def given() -> set[str] | None:
    """Return the IDs of the configs of the server; None if unknown."""
    try:
        configs = json.loads(places.metadata().read_bytes())
        return {str(config['id']) for config in configs}
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _number(value: object) -> float | None:
    try:
        return float(str(value))
    except ValueError:
        return None


def _time(text: object) -> float | None:
    try:
        when = time.strptime(str(text)[:19], '%Y-%m-%dT%H:%M:%S')
    except ValueError:
        return None
    return float(calendar.timegm(when))
