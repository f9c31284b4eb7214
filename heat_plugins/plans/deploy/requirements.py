# SPDX-License-Identifier: Apache-2.0
"""What must have passed before a plan is deployed.

``plan-environment.yaml`` names groups of the plan's own validations::

    required_validations: [prep, pre - deployment]

That they have passed counts for the content that they were run with, and for
a while: they look at a world that changes.
"""

import hashlib
from typing import Final

from heat_plugins import errors
from heat_plugins.objectstore import json_records
from heat_plugins.plans.content import environments
from heat_plugins.plans.content import plans

#: The section of the file.
SECTION: Final = 'required_validations'

#: Seconds for which a group that has passed counts as passed.
VALID: Final = 3600

#: The most groups: of each a record is read.
MOST: Final = 100

_PREFIX = 'validated/'


def read(environment: environments.PlanEnvironment) -> tuple[str, ...]:
    """Return the groups that a plan names.

    :raises errors.Invalid: its section is not a list of groups.
    """
    found = environment.more.get(SECTION)
    if found is None:
        return ()
    if not isinstance(found, list) or not all(
        isinstance(one, str) and one.strip() for one in found
    ):
        raise errors.Invalid(
            f'{SECTION} of {environments.PATH} must be a list of groups'
        )
    groups = tuple(dict.fromkeys(found))
    if len(groups) > MOST:
        raise errors.Invalid(
            f'{SECTION} of {environments.PATH} names {len(groups)} groups; '
            f'name at most {MOST}'
        )
    return groups


def record(
    annex: json_records.Records, content_hash: str, group: str, now: float
) -> None:
    """Record that a group has passed with a content."""
    annex.write(
        _name(group),
        {'group': group, 'content_hash': content_hash, 'at': now},
    )


def check(annex: json_records.Records, plan: plans.Plan, now: float) -> None:
    """Refuse a deployment for which a group has not passed.

    :raises errors.Refused: so it is.
    """
    for group in read(plan.environment):
        found = annex.find(_name(group))
        if not (
            isinstance(found, dict)
            and found.get('content_hash') == plan.content_hash
            and isinstance(at := found.get('at'), int | float)
            and now - at < VALID
        ):
            raise errors.Refused(
                f'The validations of group {group} have not passed for the '
                f'current plan {plan.name} within the last {VALID // 60} '
                'minutes. Run them: openstack deployment plan validation run '
                f'{plan.name} --group {group}'
            )


def _name(group: str) -> str:
    return f'{_PREFIX}{hashlib.sha256(group.encode()).hexdigest()[:16]}'
