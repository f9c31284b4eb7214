# SPDX-License-Identifier: Apache-2.0
"""What is to run after a plan has been deployed.

``plan-environment.yaml`` names it, in order::

    post_deployment:
      - workflow: shop.configure
        input: {region: north}
      - action: std.echo
        input: {output: done}
"""

from collections import abc
import dataclasses
import enum
from typing import Any, Protocol

from heat_plugins.plans import environment as environments
from heat_plugins.plans import errors

#: The section of the file.
SECTION = 'post_deployment'


class Kind(enum.StrEnum):
    WORKFLOW = 'workflow'
    ACTION = 'action'


@dataclasses.dataclass(frozen=True, kw_only=True)
class Step:
    """A workflow or an action of Mistral's, with its input."""

    kind: Kind
    name: str
    input: abc.Mapping[str, Any] = dataclasses.field(
        default_factory=dict, repr=False
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a step stands; `success` is None while it goes on."""

    success: bool | None
    reason: str = ''


class Runner(Protocol):
    """What runs steps: Mistral.

    Each may raise `errors.Denied`, `errors.Unavailable` or another
    `errors.ServiceError`.
    """

    def start(self, step: Step, description: str) -> str:
        """Begin a step; return the id of its execution."""

    def look(self, step: Step, execution_id: str) -> Outcome:
        """Return how an execution stands."""


def read(environment: environments.PlanEnvironment) -> tuple[Step, ...]:
    """Return the steps of a plan.

    :raises errors.Invalid: its section is none of steps.
    """
    found = environment.more.get(SECTION)
    if found is None:
        return ()
    if not isinstance(found, list):
        raise errors.Invalid(f'{SECTION} of {environments.PATH} is no list')
    return tuple(_step(one, place) for place, one in enumerate(found, 1))


def _step(found: Any, place: int) -> Step:
    if isinstance(found, dict) and found.keys() <= {*Kind, 'input'}:
        values = {'input': {}, **found}
        arguments = values.pop('input') or {}
        if len(values) == 1 and isinstance(arguments, dict):
            ((kind, name),) = values.items()
            if isinstance(name, str) and name.strip():
                return Step(kind=Kind(kind), name=name, input=arguments)
    raise errors.Invalid(
        f'Number {place} in {SECTION} of {environments.PATH} is no map of '
        'either workflow or action, with a name, and input, with a map'
    )
