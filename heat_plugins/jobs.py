# SPDX-License-Identifier: Apache-2.0
"""Work that takes long, in steps; it survives the process that drives it.

A job begins with a state, a frozen dataclass that JSON can say, and `JobStep`
leads from one state to the next. Nothing is held between two steps. A step may
be repeated, after a crash or by two drivers at once, and then finds what it
has done. The order of steps stands in each job's table of phases. Drivers know
nothing of it: `drive` is the loop of the commands, and the workflow
*heat_plugins.job* that of Mistral, which calls `advance`.
"""

from collections import abc
import dataclasses
import enum
import functools
import time
from typing import Any, Generic, Protocol, TypeVar

from heat_plugins import errors
from heat_plugins import retrying
from heat_plugins import stored

#: Attempts in a row that a service may leave unanswered, and the seconds
#: between two of them.
ATTEMPTS = 1000
PAUSE = 5.0

_State = TypeVar('_State')


class CallKind(enum.StrEnum):
    WORKFLOW = 'workflow'
    ACTION = 'action'


@dataclasses.dataclass(frozen=True, kw_only=True)
class Call:
    """A workflow or an action of Mistral, which runs between two steps."""

    kind: CallKind
    name: str
    input: abc.Mapping[str, Any] = dataclasses.field(
        default_factory=dict, repr=False
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class CallOutcome:
    """The outcome of a call.

    :ivar success: None until it ends.
    :ivar code: of the error of an action of ours; see `errors.restore`. It
        has none if its executor has died.
    """

    success: bool | None
    reason: str = ''
    code: str = ''


@dataclasses.dataclass(frozen=True, kw_only=True)
class JobStep(Generic[_State]):
    """A step that a job has taken.

    :ivar next_look: the seconds until the next step; a driver whose steps
        cost little may take it earlier.
    :ivar call: what the driver runs before the next step.
    :ivar success: None until the job ends.
    """

    state: _State
    next_look: int = 0
    call: Call | None = None
    success: bool | None = None
    reason: str = ''


class Job(Protocol[_State]):
    """A kind of work: the deployment of a plan, a move of nodes."""

    def step(
        self, state: _State, outcome: CallOutcome | None
    ) -> JobStep[_State]:
        """Take a step.

        :param outcome: of the call that the last step asked for.
        :raises errors.Unavailable: a service does not answer; retry.
        """

    def output(self, state: _State) -> dict[str, Any]:
        """Return the part of a state that commands and workflows show."""


def drive(
    job: Job[_State],
    state: _State,
    *,
    tell: abc.Callable[[JobStep[_State]], bool | None] = lambda step: None,
    run: abc.Callable[[Call], CallOutcome] = lambda call: CallOutcome(
        success=False
    ),
    note: abc.Callable[[str], object] = lambda sentence: None,
    most: float = 60.0,
    sleep: abc.Callable[[float], None] = time.sleep,
) -> JobStep[_State]:
    """Take steps until the job has ended; return the last one.

    :param state: the first one.
    :param tell: is called after each step; True ends the waiting.
    :param run: runs the calls of the job.
    :param note: is called with a sentence when the first step is retried.
    :param most: the most seconds between two steps.
    """
    pause = min(PAUSE, most)
    insist: abc.Callable[..., Any] = functools.partial(
        retrying.insist, attempts=ATTEMPTS, wait=pause, most=pause, sleep=sleep
    )
    # Nothing is on its way yet, so an outage is reported, and ends sooner.
    step: JobStep[_State] = insist(
        job.step, state, None, seconds=retrying.BUDGET, note=note
    )
    while not insist(tell, step) and step.success is None:
        outcome = run(step.call) if step.call else None
        if step.next_look:
            sleep(min(step.next_look, most))
        step = insist(job.step, step.state, outcome)
    return step


def advance(
    job: Job[_State],
    begun: _State,
    state: object | None,
    outcome: object | None,
) -> dict[str, Any]:
    """Take a step for a driver that knows JSON; return all that it needs.

    :param begun: the first state.
    :param state: the present one; None for the first.
    :raises errors.Invalid: `state` is no state of this job.
    """
    try:
        step = job.step(
            begun if state is None else stored.read(type(begun), state),
            None if outcome is None else stored.read(CallOutcome, outcome),
        )
    except ValueError as exc:
        raise errors.Invalid(
            f'The state of the job is invalid: {exc}'
        ) from exc
    return dataclasses.asdict(step) | {'output': job.output(step.state)}
