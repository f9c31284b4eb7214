# SPDX-License-Identifier: Apache-2.0
"""The deployment of a plan: validations, the stack, and later steps."""

from collections import abc
import dataclasses
import enum
from typing import Any

from heat_plugins import errors
from heat_plugins import jobs
from heat_plugins.plans.deploy import deploy_records
from heat_plugins.plans.deploy import deploying

#: The workflow that runs the validations that a plan requires.
VALIDATIONS = 'validations.run'


class DeployPhase(enum.StrEnum):
    """The phase of a deployment, which the next step performs."""

    VALIDATE = 'validate'
    START = 'start'
    FOLLOW = 'follow'
    CONFIGURE = 'configure'


@dataclasses.dataclass(frozen=True, kw_only=True)
class PlanDeployment:
    """The state of a deployment.

    :ivar timeout: the most minutes that Heat may take.
    :ivar take_over: whether the stack may be one that no plan has made.
    :ivar started: the action of Heat.
    :ivar stack: its last state; see `deploying.Deployer.poll`.
    :ivar configured: the number of the plan's calls that have succeeded.
    """

    plan: str
    timeout: int | None = None
    take_over: bool = False
    phase: DeployPhase = DeployPhase.VALIDATE
    started: deploying.Started = dataclasses.field(
        default_factory=deploying.Started
    )
    stack: abc.Mapping[str, Any] | None = None
    configured: int = 0

    @property
    def has_started(self) -> bool:
        return self.phase not in (DeployPhase.VALIDATE, DeployPhase.START)


Step = jobs.JobStep[PlanDeployment]


class Deploy:
    """The deployment of plans; a `jobs.Job`."""

    def __init__(self, deployer: deploying.Deployer) -> None:
        self._deployer = deployer

    def step(
        self, state: PlanDeployment, outcome: jobs.CallOutcome | None
    ) -> Step:
        """Take a step; see `jobs.Job`.

        :raises errors.Refused: a validation that the plan requires did not
            pass, or the stack cannot be deployed to now.
        """
        match state.phase:
            case DeployPhase.VALIDATE:
                return self._validate(state, outcome)
            case DeployPhase.START:
                started = self._deployer.start(
                    state.plan,
                    before=state.started,
                    timeout=state.timeout,
                    take_over=state.take_over,
                )
                state = dataclasses.replace(
                    state, phase=DeployPhase.FOLLOW, started=started
                )
                return jobs.JobStep(state=state, next_look=deploying.SOONEST)
            case DeployPhase.FOLLOW:
                stack = self._deployer.poll(
                    state.started.stack_id, state.started.before
                )
                state = dataclasses.replace(state, stack=stack)
                if not stack['success']:
                    return jobs.JobStep(
                        state=state,
                        next_look=stack['next_look'],
                        success=stack['success'],
                        reason=f'{stack["status"]}: {stack["reason"]}',
                    )
                state = dataclasses.replace(state, phase=DeployPhase.CONFIGURE)
                return self._configure(state)
            case DeployPhase.CONFIGURE:
                return self._configure(state, outcome)

    def _validate(
        self, state: PlanDeployment, outcome: jobs.CallOutcome | None
    ) -> Step:
        """Run the validations that the plan requires."""
        groups = self._deployer.required(state.plan)
        if groups and outcome is None:
            call = jobs.Call(
                kind=jobs.CallKind.WORKFLOW,
                name=VALIDATIONS,
                input={'plan': state.plan, 'groups': groups},
            )
            return jobs.JobStep(state=state, call=call)
        if outcome is not None and not outcome.success:
            raise errors.Refused(
                'Validations that the plan requires have not passed: '
                f'{outcome.reason}'
            )
        # A repetition of the next step finds its own deployment by this.
        state = dataclasses.replace(
            state,
            phase=DeployPhase.START,
            started=self._deployer.observe(state.plan),
        )
        return jobs.JobStep(state=state)

    def output(self, state: PlanDeployment) -> dict[str, Any]:
        """Return the output of the workflow."""
        return {'stack': state.stack, 'warnings': [*state.started.warnings]}

    def _configure(
        self, state: PlanDeployment, outcome: jobs.CallOutcome | None = None
    ) -> Step:
        """Run the plan's next workflow or action for after it."""
        calls = state.started.steps
        if outcome is not None:
            call = calls[state.configured]
            if not outcome.success:
                where = f'{call.kind} {call.name} of {deploy_records.STEPS}: '
                reason = f'{call.name} has failed'
                if outcome.reason:
                    reason = f'{where}{outcome.reason}'
                return jobs.JobStep(state=state, success=False, reason=reason)
            state = dataclasses.replace(state, configured=state.configured + 1)
        if state.configured == len(calls):
            return jobs.JobStep(state=state, success=True)
        return jobs.JobStep(state=state, call=calls[state.configured])
