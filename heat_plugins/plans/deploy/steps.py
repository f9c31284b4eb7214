# SPDX-License-Identifier: Apache-2.0
"""The steps that run after a plan has been deployed.

``plan-environment.yaml`` names it, in order::

    post_deployment:
      - workflow: shop.configure
        input: {region: north}
      - action: std.echo
        input: {output: done}
"""

from typing import Any

from heat_plugins import errors
from heat_plugins import jobs
from heat_plugins.plans.content import environments

#: The section of the file.
SECTION = 'post_deployment'


def read(environment: environments.PlanEnvironment) -> tuple[jobs.Call, ...]:
    """Return the steps of a plan.

    :raises errors.Invalid: its section is none of steps.
    """
    section = environment.more.get(SECTION)
    if section is None:
        return ()
    if not isinstance(section, list):
        raise errors.Invalid(
            f'{SECTION} of {environments.PATH} must be a list'
        )
    return tuple(_call(entry, place) for place, entry in enumerate(section, 1))


def _call(entry: Any, place: int) -> jobs.Call:
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
        f'Number {place} in {SECTION} of {environments.PATH} must be a map '
        'with either workflow or action, a name, and optionally input, a map'
    )
