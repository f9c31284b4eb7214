# SPDX-License-Identifier: Apache-2.0
"""Records of deployments, and the sections of a plan about deployments.

``plan-environment.yaml`` names groups of the plan's own validations::

    required_validations: [prep, pre - deployment]

A pass counts for the content that the validations were run with, and for an
hour. The file also names the steps that run after a deployment, in order::

    post_deployment:
      - workflow: shop.configure
        input: {region: north}
      - action: std.echo
        input: {output: done}
"""

import dataclasses
import datetime
import hashlib
from typing import Any, Final

from heat_plugins import errors
from heat_plugins import jobs
from heat_plugins.objectstore import json_records
from heat_plugins.plans.content import environments
from heat_plugins.plans.content import plans
from heat_plugins.plans.content import references

_DEPLOYED = 'deployed'


@dataclasses.dataclass(frozen=True, kw_only=True)
class DeployRecord:
    """A content that Heat was given, secrets included.

    :ivar at: in UTC, as in 2026-11-21T01:40:36Z.
    :ivar content_hash: of the plan at that time.
    """

    at: str
    content_hash: str
    content: references.Resolved = dataclasses.field(repr=False)


def write_deployed(
    annex: json_records.Records,
    content_hash: str,
    content: references.Resolved,
    now: float,
) -> None:
    """Record a deployed content in place of the former one."""
    when = datetime.datetime.fromtimestamp(now, datetime.UTC)
    record = DeployRecord(
        at=when.strftime('%Y-%m-%dT%H:%M:%SZ'),
        content_hash=content_hash,
        # Its warnings are of no use later.
        content=dataclasses.replace(content, warnings=()),
    )
    annex.write(_DEPLOYED, dataclasses.asdict(record))


def find_deployed(
    annex: json_records.Records, content_hash: str
) -> DeployRecord | None:
    """Return the record of the last content, if it is this one."""
    record = annex.load(DeployRecord, _DEPLOYED)
    return record if record and record.content_hash == content_hash else None


#: The sections of the file.
STEPS: Final = 'post_deployment'
REQUIRED: Final = 'required_validations'

#: Seconds for which a group that has passed counts as passed.
VALID: Final = 3600

#: The most groups; each has a record to be read.
MOST: Final = 100

_VALIDATED = 'validated/'


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Pass:
    """The last pass of a group of validations."""

    content_hash: str
    at: float


def required(environment: environments.PlanEnvironment) -> tuple[str, ...]:
    """Return the groups of validations that a plan requires.

    :raises errors.Invalid: its section is not a list of groups.
    """
    section = environment.more.get(REQUIRED)
    if section is None:
        return ()
    if not isinstance(section, list) or not all(
        isinstance(group, str) and group.strip() for group in section
    ):
        raise errors.Invalid(
            f'{REQUIRED} of {environments.PATH} must be a list of groups'
        )
    groups = tuple(dict.fromkeys(section))
    if len(groups) > MOST:
        raise errors.Invalid(
            f'{REQUIRED} of {environments.PATH} names {len(groups)} groups; '
            f'name at most {MOST}'
        )
    return groups


def record(
    annex: json_records.Records, content_hash: str, group: str, now: float
) -> None:
    """Record that a group of validations has passed with a content."""
    passed = _Pass(content_hash=content_hash, at=now)
    annex.write(_name(group), dataclasses.asdict(passed))


def check(annex: json_records.Records, plan: plans.Plan, now: float) -> None:
    """Refuse a deployment before required validations have passed.

    :raises errors.Refused: a group has not passed.
    """
    for group in required(plan.environment):
        passed = annex.load(_Pass, _name(group))
        if (
            passed is None
            or passed.content_hash != plan.content_hash
            or now - passed.at >= VALID
        ):
            raise errors.Refused(
                f'The validations of group {group} have not passed for the '
                f'current plan {plan.name} within the last {VALID // 60} '
                'minutes. Run them: openstack deployment plan validation run '
                f'{plan.name} --group {group}'
            )


def _name(group: str) -> str:
    """Return the record's name of a group of validations."""
    return f'{_VALIDATED}{hashlib.sha256(group.encode()).hexdigest()[:16]}'


def steps(environment: environments.PlanEnvironment) -> tuple[jobs.Call, ...]:
    """Return the steps after a deployment of a plan.

    :raises errors.Invalid: its section is no list of steps.
    """
    section = environment.more.get(STEPS)
    if section is None:
        return ()
    if not isinstance(section, list):
        raise errors.Invalid(f'{STEPS} of {environments.PATH} must be a list')
    return tuple(_call(entry, place) for place, entry in enumerate(section, 1))


def _call(entry: Any, place: int) -> jobs.Call:
    """Read a workflow or action that runs after a deployment."""
    if isinstance(entry, dict) and entry.keys() <= {*jobs.CallKind, 'input'}:
        values = {'input': {}, **entry}
        arguments = values.pop('input') or {}
        if len(values) == 1 and isinstance(arguments, dict):
            ((kind, name),) = values.items()
            if isinstance(name, str) and name.strip():
                return jobs.Call(
                    kind=jobs.CallKind(kind), name=name, input=arguments
                )
    raise errors.Invalid(
        f'Number {place} in {STEPS} of {environments.PATH} must be a map '
        'with either workflow or action, a name, and optionally input, a map'
    )
