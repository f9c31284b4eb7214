# SPDX-License-Identifier: Apache-2.0
"""A run of validations, and the outcome of each: values only."""

from collections import abc
import dataclasses
import enum

from heat_plugins import wording


class ValidationState(enum.StrEnum):
    """How a validation, or a run of several, stands.

    A run is LOST when the process that ran it died without a word.
    """

    WAITING = 'WAITING'
    RUNNING = 'RUNNING'
    PASSED = 'PASSED'
    FAILED = 'FAILED'
    TIMED_OUT = 'TIMED_OUT'
    STOPPED = 'STOPPED'
    LOST = 'LOST'

    @property
    def ended(self) -> bool:
        return self not in (ValidationState.WAITING, ValidationState.RUNNING)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TaskResult:
    """What a task has done on a host.

    :ivar state: that of the host then: ok, changed, skipped, ignored, failed
        or unreachable.
    :ivar message: what it says, cut.
    """

    play: str
    task: str
    host: str
    state: str
    message: str = ''
    seconds: float = 0.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class ValidationOutcome:
    """How a validation stands in a run.

    :ivar under_way: the task that has started last.
    :ivar hosts: of each host, how many tasks ended in which state.
    """

    validation: str
    name: str = ''
    groups: tuple[str, ...] = ()
    state: ValidationState = ValidationState.WAITING
    reason: str = ''
    seconds: float = 0.0
    under_way: str = ''
    hosts: abc.Mapping[str, abc.Mapping[str, int]] = dataclasses.field(
        default_factory=dict
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Detail:
    """All that is kept of a validation in a run.

    :ivar tasks: in their order, up to a limit.
    :ivar stdout: what Ansible has printed, up to a limit.
    :ivar cut: whether there was more of either.
    """

    tasks: tuple[TaskResult, ...] = ()
    stdout: str = ''
    cut: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class ValidationRun:
    """A run of validations.

    :ivar id: tells when it began, too.
    :ivar source: where the playbooks are from, such as ``plan shop``.
    :ivar stack: whose servers; '' for the machine that runs them.
    :ivar content_hash: of the plan at that time; '' without a plan.
    :ivar started_at: in UTC, as in 2026-11-21T01:40:36Z.
    """

    id: str
    source: str
    plan: str = ''
    stack: str = ''
    content_hash: str = ''
    started_at: str
    seconds: float = 0.0
    state: ValidationState = ValidationState.RUNNING
    reason: str = ''
    outcomes: tuple[ValidationOutcome, ...] = ()

    @property
    def counts(self) -> dict[str, int]:
        """How many of its validations are in which state."""
        states = [outcome.state for outcome in self.outcomes]
        return {
            str(state): states.count(state) for state in dict.fromkeys(states)
        }


def judged(run: ValidationRun, *, stopped: bool) -> ValidationRun:
    """Return a run that has ended, with a state and a reason.

    :param stopped: whether a caller has stopped it.
    """
    bad = [
        outcome
        for outcome in run.outcomes
        if outcome.state is not ValidationState.PASSED
    ]
    if not bad:
        return dataclasses.replace(run, state=ValidationState.PASSED)
    if stopped:
        return dataclasses.replace(
            run,
            state=ValidationState.STOPPED,
            reason=run.reason or 'It was stopped',
        )
    reasons = wording.lines(
        (
            wording.Fault(name=outcome.validation, reason=outcome.reason)
            for outcome in bad
        ),
        '"validation result show" has all',
        noun='validation',
        limit=5,
    )
    return dataclasses.replace(
        run,
        state=ValidationState.FAILED,
        reason=f'{len(bad)} of {len(run.outcomes)} did not pass: '
        + '; '.join(reasons),
    )
