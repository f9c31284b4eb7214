# SPDX-License-Identifier: Apache-2.0
"""The steps that run after a plan has been deployed.

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
import functools
import time
from typing import Any, Protocol

from heat_plugins import errors
from heat_plugins import retrying
from heat_plugins.plans.content import plan_environment as environments

#: The section of the file.
SECTION = 'post_deployment'

# Seconds between two looks at an execution.
_INTERVAL = 2.0


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
    """How a step stands; `success` is None until it ends."""

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
        raise errors.Invalid(
            f'{SECTION} of {environments.PATH} must be a list'
        )
    return tuple(_step(one, place) for place, one in enumerate(found, 1))


def run(
    wanted: abc.Iterable[Step],
    runner: Runner,
    description: str,
    *,
    tell: abc.Callable[[Step], None],
    sleep: abc.Callable[[float], None] = time.sleep,
) -> None:
    """Run steps one after the other, up to the first that fails.

    :raises errors.Failed: a step did not succeed.
    """
    for step in wanted:
        tell(step)
        execution_id = runner.start(step, description)
        sleep(_INTERVAL)
        found = retrying.follow(
            functools.partial(runner.look, step, execution_id),
            lambda found: found.success is not None,
            interval=_INTERVAL,
            sleep=sleep,
        )
        if not found.success:
            raise errors.Failed(
                f'{step.kind} {step.name} of {SECTION}: {found.reason}'
            )


def _step(found: Any, place: int) -> Step:
    if isinstance(found, dict) and found.keys() <= {*Kind, 'input'}:
        values = {'input': {}, **found}
        arguments = values.pop('input') or {}
        if len(values) == 1 and isinstance(arguments, dict):
            ((kind, name),) = values.items()
            if isinstance(name, str) and name.strip():
                return Step(kind=Kind(kind), name=name, input=arguments)
    raise errors.Invalid(
        f'Number {place} in {SECTION} of {environments.PATH} must be a map '
        'with either workflow or action, a name, and optionally input, a map'
    )
