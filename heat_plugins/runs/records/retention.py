# SPDX-License-Identifier: Apache-2.0
"""What is kept of finished runs, and for how long."""

from collections import abc
import dataclasses

from heat_plugins.runs.records import record_names
from heat_plugins.signals import live


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
        keys: abc.Iterable[record_names.Key],
        opened: abc.Collection[str],
        now: float,
    ) -> list[record_names.Key]:
        """Return the runs to be forgotten.

        :param opened: the ids of those that are not over.
        """
        oldest = now - self.days * 86400
        kept: dict[tuple[str, str], int] = {}
        surplus = []
        for key in sorted(keys, key=lambda k: k.run_id, reverse=True):
            if key.run_id in opened:
                continue
            place = key.deployment_id, key.action
            kept[place] = kept.get(place, 0) + 1
            too_old = record_names.started_at(key.run_id) < oldest
            if kept[place] > self.number or too_old:
                surplus.append(key)
        return surplus
