# SPDX-License-Identifier: Apache-2.0
"""What was deployed of a plan, exactly, and when."""

import dataclasses
import datetime

from heat_plugins.objectstore import json_records
from heat_plugins.plans.content import references

#: Number of deployments of a plan that are remembered.
KEPT = 10

_PREFIX = 'deployed/'


@dataclasses.dataclass(frozen=True, kw_only=True)
class Record:
    """A content that Heat was given, secrets and all.

    :ivar at: in UTC, as in 2026-11-21T01:40:36Z.
    :ivar content_hash: of the plan at that time.
    """

    at: str
    content_hash: str
    content: references.Resolved = dataclasses.field(repr=False)


def write(
    annex: json_records.Records,
    content_hash: str,
    content: references.Resolved,
    now: float,
) -> None:
    """Record a content, and forget those before the last few."""
    when = datetime.datetime.fromtimestamp(now, datetime.UTC)
    at = when.strftime('%Y-%m-%dT%H:%M:%SZ')
    value = {
        'at': at,
        'content_hash': content_hash,
        'content': {
            'template': content.template,
            'environments': list(content.environments),
            'files': dict(content.files),
        },
    }
    annex.write(f'{_PREFIX}{at}-{content_hash[:12]}', value)
    annex.delete(*annex.names(_PREFIX)[:-KEPT])


def find(annex: json_records.Records, content_hash: str) -> Record | None:
    """Return the latest record of a content."""
    for name in reversed(annex.names(_PREFIX)):
        if name.endswith(content_hash[:12]):
            record = annex.load(Record, name)
            if record is not None and record.content_hash == content_hash:
                return record
    return None
