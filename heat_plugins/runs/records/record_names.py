# SPDX-License-Identifier: Apache-2.0
"""Where runs lie in the container of a root stack, and for how long.

::

    runs/open/<deployment>/<action>/<run>       until all is cleaned up
    runs/records/<run>/<deployment>/<action>    what is known of it
    runs/outputs/<run>                          outputs too large for that
    runs/logs/<run>/<slot>                      what it prints; see `live`
    signals/<deployment>/<run>                  what the server sends
    signals/<deployment>/<run>.progress         what it sends meanwhile
    signals/<deployment>/<run>.control          there if it must stop

So one listing of ``runs/open/`` and one of ``signals/`` say what has changed
for all runs of a stack, and a record is only fetched when it is wanted. The
signals lie below the deployment's folder: they go with it.
"""

from collections import abc
import dataclasses
import datetime
import hashlib
import re
import secrets
from urllib import parse

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins.signals import body
from heat_plugins.signals import live
from heat_plugins.signals import signal_names

OPEN = 'runs/open/'
RECORDS = 'runs/records/'
OUTPUTS = 'runs/outputs/'
LOGS = 'runs/logs/'

_RUN_ID = re.compile(r'[0-9]{8}T[0-9]{6}Z-[0-9a-f]{8}')
_TIME = '%Y%m%dT%H%M%SZ'


@dataclasses.dataclass(frozen=True, kw_only=True)
class Key:
    """What the name of a record says."""

    run_id: str
    deployment_id: str
    action: str

    @property
    def signal(self) -> str:
        """The object that is its result."""
        return signal_names.signal(self.deployment_id, self.run_id)


def new_run_id(now: float) -> str:
    """Return a new, unique ID; those of later runs sort after it.

    Its first three digits after the time are parts of the second.
    """
    when = datetime.datetime.fromtimestamp(now, datetime.UTC)
    part = int(now % 1 * 4096)
    return f'{when.strftime(_TIME)}-{part:03x}{secrets.token_hex(4)[3:]}'


def id_of_tick(schedule_id: str, time: int) -> str:
    """Return the ID of what a schedule runs at an instant.

    Each process finds the same, so that two of them start one thing. The
    letters behind the time distinguish the schedules of a project.
    """
    when = datetime.datetime.fromtimestamp(time, datetime.UTC)
    digest = hashlib.sha256(schedule_id.encode()).hexdigest()
    return f'{when.strftime(_TIME)}-{digest[:8]}'


def is_run_id(text: str) -> bool:
    if _RUN_ID.fullmatch(text) is None:
        return False
    try:
        started_at(text)
    except ValueError:
        # Such as the 31st of February: not a name of ours.
        return False
    return True


def operation_of(run_id: str) -> str | None:
    """Return the operation in ``<operation>.<member>.<attempt>``."""
    operation, separator, _ = run_id.partition('.')
    return operation if separator else None


def started_at(run_id: str) -> int:
    """Return when a run was started, by its id."""
    when = datetime.datetime.strptime(run_id.partition('-')[0], _TIME)
    return int(when.replace(tzinfo=datetime.UTC).timestamp())


def open_folder(deployment_id: str) -> str:
    """Return the prefix of the open runs of a deployment, or of a group."""
    return f'{OPEN}{signal_names.folder_name(deployment_id)}'


def open_prefix(deployment_id: str, action: str) -> str:
    return f'{open_folder(deployment_id)}{_quoted(action)}/'


def open_name(key: Key) -> str:
    return open_prefix(key.deployment_id, key.action) + key.run_id


def record_name(key: Key) -> str:
    action = _quoted(key.action)
    return f'{RECORDS}{key.run_id}/{key.deployment_id}/{action}'


def outputs_name(run_id: str) -> str:
    return f'{OUTPUTS}{run_id}'


def log_folder(run_id: str) -> str:
    """Return the prefix of what a run prints."""
    return f'{LOGS}{run_id}/'


def parse_open(name: str) -> Key | None:
    """Return what an object below `OPEN` stands for."""
    deployment_id, action, run_id = _three(name.removeprefix(OPEN))
    return _key(run_id, deployment_id, action)


def parse_record(name: str) -> Key | None:
    """Return what an object below `RECORDS` stands for."""
    return _key(*_three(name.removeprefix(RECORDS)))


def _three(name: str) -> list[str]:
    parts = name.split('/')
    return parts if len(parts) == 3 else [''] * 3


def _key(run_id: str, deployment_id: str, action: str) -> Key | None:
    if not is_run_id(run_id):
        return None
    return Key(
        run_id=run_id,
        deployment_id=deployment_id,
        action=parse.unquote(action),
    )


def signal_of_run(name: str) -> str | None:
    """Return the id of the run that a signal belongs to, if to one."""
    signal = live.signal_name(body.result_name(name))
    last = signal.rpartition('/')[2]
    return last if is_run_id(last) else None


def _quoted(action: str) -> str:
    return parse.quote(action, safe='')


def find(
    wanted: str,
    what: str,
    listed: abc.Callable[[str], abc.Sequence[str]],
) -> str:
    """Return the one ID that begins, or ends, like that.

    :param what: is looked for, such as "run".
    :param listed: returns the IDs that begin with a text, the oldest first.
    :raises errors.NotFound: there is none, or more than one.
    """
    ids = listed(wanted) if wanted[:1].isdigit() else []
    if not ids and wanted:
        # The random end of an ID is what people can remember.
        ids = [each for each in listed('') if each.endswith(wanted)]
    if len(ids) > 1:
        raise errors.NotFound(
            f'{bounds.shortened(wanted)} is ambiguous: '
            f'{bounds.listed(ids[-5:])}; give more characters of the ID'
        )
    if not ids:
        raise errors.NotFound(
            f'There is no {what} {bounds.shortened(wanted)}; give its ID, or '
            'the beginning or end of the ID'
        )
    return ids[0]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Retention:
    """What is kept of the finished runs.

    :ivar number: the most of an action on a deployment.
    :ivar days: the most days.
    :ivar log_limit: the most bytes of what each has printed.
    """

    number: int = 20
    days: int = 90
    log_limit: int = live.LIMIT

    def surplus(
        self,
        keys: abc.Iterable[Key],
        opened: abc.Collection[str],
        now: float,
        ended: abc.Mapping[str, int] | None = None,
    ) -> list[Key]:
        """Return the runs to be forgotten, the newest first.

        :param opened: the ids of those that are not over.
        :param ended: when those ended whose IDs do not tell their age, such as
            those of times of the past; None if there are none.
        """

        def newness(run_id: str) -> tuple[int, str]:
            return (ended or {}).get(run_id) or started_at(run_id), run_id

        oldest = now - self.days * 86400
        kept: dict[tuple[str, str], int] = {}
        surplus = []
        for key in sorted(keys, key=lambda k: newness(k.run_id), reverse=True):
            if key.run_id in opened:
                continue
            place = key.deployment_id, key.action
            kept[place] = kept.get(place, 0) + 1
            too_old = newness(key.run_id)[0] < oldest
            if kept[place] > self.number or too_old:
                surplus.append(key)
        return surplus
