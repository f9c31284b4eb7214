# SPDX-License-Identifier: Apache-2.0
"""All that was measured, as JSON."""

import dataclasses
import json
import pathlib
from typing import Any

from tests.bench import completing as completions
from tests.bench import counting
from tests.bench import cycling
from tests.bench import pacing
from tests.bench import rounds
from tests.bench import stacks
from tests.bench import tables


@dataclasses.dataclass(kw_only=True)
class Record:
    """One run of the bench.

    :ivar machine: see `machine.about`.
    :ivar options: what the run was asked for.
    :ivar made_at: when it began, in UTC.
    :ivar seconds: how long it took.
    """

    machine: dict[str, Any]
    options: dict[str, Any]
    made_at: str
    seconds: float = 0.0
    measured: list[rounds.Round] = dataclasses.field(default_factory=list)
    completing: list[completions.Measured] = dataclasses.field(
        default_factory=list
    )
    paces: list[pacing.Measured] = dataclasses.field(default_factory=list)
    cycled: list[cycling.Cycled] = dataclasses.field(default_factory=list)
    live: tables.Table | None = None
    quick: tables.Table | None = None
    runs: tables.Table | None = None
    scheduled: tables.Table | None = None
    answered: tables.Table | None = None
    profile: tables.Table | None = None

    def write(self, file: pathlib.Path) -> None:
        text = json.dumps(dataclasses.asdict(self), indent=1, sort_keys=True)
        file.write_text(text + '\n', encoding='utf-8')


def read(file: pathlib.Path) -> Record:
    content = json.loads(file.read_text(encoding='utf-8'))
    content['measured'] = [_round(one) for one in content['measured']]
    content['completing'] = [
        completions.Measured(**one) for one in content.get('completing', ())
    ]
    content['paces'] = [pacing.Measured(**one) for one in content['paces']]
    content['cycled'] = [
        cycling.Cycled(**one) for one in content.get('cycled') or ()
    ]
    return Record(**content)


def _round(content: dict[str, Any]) -> rounds.Round:
    content['counts'] = {
        phase: counting.Counts(**counts)
        for phase, counts in content['counts'].items()
    }
    for key in ('signals', 'update_signals'):
        if content[key] is not None:
            content[key] = stacks.Signalled(**content[key])
    return rounds.Round(**content)
