# SPDX-License-Identifier: Apache-2.0
"""Everything that can be done with validations, in terms of JSON.

Commands call this directly, or let Mistral's actions call it; so both ways
have one result. Where a method takes ``plan``, ``container`` and ``object``,
or ``package``, one of them says where the playbooks are: in the folder
``validations`` of a plan, in a tarball in the object store, or in a Python
package on the machine that runs them.
"""

from collections import abc
import contextlib
import dataclasses
import datetime
import enum
import re
from typing import Any, Final, Self

from heat_plugins import errors
from heat_plugins import jobs
from heat_plugins import masking
from heat_plugins.content import sources
from heat_plugins.objectstore import parcels
from heat_plugins.plans import plan_service
from heat_plugins.plans.content import plans
from heat_plugins.plans.deploy import deploy_records
from heat_plugins.validations import catalogue
from heat_plugins.validations import inventory
from heat_plugins.validations import origins
from heat_plugins.validations import playbook_folder
from heat_plugins.validations import running
from heat_plugins.validations import validation_ledger as ledgers
from heat_plugins.validations import validation_runs

#: How often a run is repeated whose process has died.
REPEATS: Final = 2

# Seconds until the next poll of a run whose process is alive.
_POLL: Final = 20

# Polls without news of a run, after which its process counts as dead.
_SILENT: Final = 15

_NAME = re.compile('[A-Za-z_][A-Za-z0-9_]*')


@dataclasses.dataclass(frozen=True, kw_only=True)
class Secrets:
    """The secret inputs of a run.

    :ivar key: a private key for ssh; '' for none.
    """

    variables: abc.Mapping[str, Any] = dataclasses.field(repr=False)
    key: str = dataclasses.field(repr=False)

    @classmethod
    def read(cls, given: Any) -> Self:
        """Return what a map of ``variables`` and ``ssh_key`` holds.

        :raises errors.Invalid: it is no such map.
        """
        # Whatever it is: not to be quoted.
        if not isinstance(given, abc.Mapping) or not (
            given.keys() <= {'variables', 'ssh_key'}
        ):
            raise errors.Invalid(
                'secrets must be a map with variables and ssh_key'
            )
        key = given.get('ssh_key') or ''
        if not isinstance(key, str):
            raise errors.Invalid('ssh_key of secrets must be a text')
        return cls(
            variables=variables_of(given.get('variables') or {}), key=key
        )

    def texts(self) -> tuple[str, ...]:
        """Return the texts to be masked."""
        return tuple(sorted({*masking.texts([self.variables, self.key])}))


def variables_of(given: Any) -> abc.Mapping[str, Any]:
    """Return variables that Ansible takes.

    :raises errors.Invalid: they are not a map, or a name is none.
    """
    if not isinstance(given, abc.Mapping):
        raise errors.Invalid('variables must be a map of names and values')
    for name in given:
        if not _NAME.fullmatch(str(name)):
            raise errors.Invalid(
                f'{str(name)[:100]!r} cannot be the name of a variable'
            )
    return given


Report = dict[str, Any]
Reports = list[Report]


class ValidationOperations:
    """The operations on the validations of a project.

    :param servers: the way to the servers of its stacks.
    :param machine: what playbooks run on; by default this one.
    """

    def __init__(
        self,
        plans: plan_service.Plans,
        servers: inventory.Servers,
        *,
        machine: running.Machine | None = None,
    ) -> None:
        self._plans = plans
        self._servers = servers
        self._origins = origins.Origins(plans)
        self._machine = machine or running.Machine()
        self.ledger = ledgers.Ledger(plans.store)

    def list(
        self,
        plan: str | None = None,
        container: str | None = None,
        object: str | None = None,
        package: str | None = None,
        groups: abc.Collection[str] = (),
    ) -> Report:
        """List validations; one of plan, object and package says which.

        :param plan: a plan, in whose folder validations they are.
        :param container: of the object.
        :param object: a tarball with playbooks.
        :param package: a Python package that is installed here.
        :param groups: a list of groups; only those in one of them.
        :returns: a map of validations and warnings.
        """
        source = self._origins.find(
            plan, container, object, package, complete=False
        )
        return self.listed(source.content, groups)

    def listed(
        self, content: sources.Content, groups: abc.Collection[str] = ()
    ) -> Report:
        """Return the validations of files that are here."""
        listed = catalogue.read(content)
        chosen = listed.choose(groups=groups)
        return {
            'validations': [
                dataclasses.asdict(validation) for validation in chosen
            ],
            'warnings': [*listed.warnings],
        }

    def required(self, plan: str) -> Report:
        """Say which groups have to pass before a plan is deployed.

        :param plan: its name.
        :returns: a map of groups.
        """
        loaded = self._plans.load(plan)
        return {'groups': [*deploy_records.read(loaded.environment)]}

    def run(
        self,
        plan: str | None = None,
        container: str | None = None,
        object: str | None = None,
        package: str | None = None,
        validations: abc.Collection[str] = (),
        groups: abc.Collection[str] = (),
        stack: str | None = None,
        host_groups: abc.Mapping[str, abc.Sequence[str]] | None = None,
        connection: str = 'ssh',
        user: str = '',
        variables: abc.Mapping[str, Any] | None = None,
        secrets: abc.Mapping[str, Any] | None = None,
        at_once: int = 4,
        timeout: int = 1800,
        run_id: str | None = None,
        *,
        source: origins.PlaybookSource | None = None,
        tell: running.Tell = lambda run: None,
        abandoned: abc.Callable[[], bool] = lambda: False,
    ) -> Report:
        """Run validations, and wait for their end.

        The operator of this Mistral has to allow it.

        :param plan: a plan, in whose folder validations they are.
        :param container: of the object.
        :param object: a tarball with playbooks.
        :param package: a Python package that is installed here.
        :param validations: a list of names; without it, and groups, all.
        :param groups: a list of groups.
        :param stack: whose servers are meant; by default the plan's stack, if
            there is one. Empty: the machine of the executor alone.
        :param host_groups: a map of groups that playbooks name: for each a
            list of hosts, such as localhost; an empty one means all.
        :param connection: to the servers, ssh or local.
        :param user: to log in as.
        :param variables: a map of variables. Mistral shows them.
        :param secrets: a reference to a map of variables and ssh_key, which
            stays secret: a map of container, object and bytes.
        :param at_once: the most playbooks at once.
        :param timeout: the most seconds that each of them may take.
        :param run_id: of the new run; by default one is made up.
        :returns: the run, without the details of its validations.
        """
        # A command has files at hand, which Mistral cannot give.
        source = source or self._origins.find(
            plan, container, object, package, complete=True
        )
        self._machine.check()
        known = catalogue.read(source.content)
        chosen = known.choose(validations, groups)
        if not chosen:
            raise errors.NotFound(
                f'There is no validation in {source.name}; a validation is a '
                'playbook whose first play has vars.metadata'
            )
        # An invalid plan is refused before anything runs.
        required = _required(source.plan, known)
        stack = self._stack(source, stack)
        run = self._begun(source, stack, run_id)
        # They stay until the end: a run whose process dies is repeated.
        with parcels.opened(self._plans.store, secrets or {}) as given:
            hidden = Secrets.read(given)
            order = running.ValidationOrder(
                validations=chosen,
                setting=playbook_folder.Setting(
                    content=source.content,
                    hosts=inventory.grouped(
                        inventory.hosts(self._servers, stack)
                        if stack
                        else [inventory.LOCALHOST],
                        host_groups or {},
                    ),
                    login=inventory.Login(connection=connection, user=user),
                    variables={
                        **variables_of(variables or {}),
                        **hidden.variables,
                    },
                    key=hidden.key,
                ),
                at_once=at_once,
                timeout=timeout,
                secrets=hidden.texts(),
            )
            self.ledger.begin(run)
            run = running.Runner(
                self.ledger,
                self._machine,
                run,
                order,
                tell=tell,
                abandoned=abandoned,
                conclude=lambda run: self._record(source.plan, required, run),
            ).run()
        # It has been run, whatever becomes of former ones.
        with contextlib.suppress(errors.ServiceError):
            self.ledger.tidy(spared=run.id)
        return report(run)

    def work(
        self,
        given: abc.Mapping[str, Any],
        state: abc.Mapping[str, Any] | None = None,
        outcome: abc.Mapping[str, Any] | None = None,
    ) -> Report:
        """Take a step of the workflow validations.run.

        :param given: the input of the workflow.
        :param state: what the last step has returned; null for the first.
        :param outcome: of the call that the last step asked for, if it did.
        :returns: a map: state; call, the action to run next, or null;
            next_look, the seconds to wait; success, null until the end; and
            the reason.
        """
        begun = ValidationWork(
            run_id=given.get('run_id') or ledgers.new_id(self._now())
        )
        return jobs.advance(ValidationJob(self, given), begun, state, outcome)

    def stop(self, run_id: str) -> Report:
        """Ask the process that runs validations to end their playbooks.

        :param run_id: the run.
        :returns: the run, which may not have ended yet.
        """
        self.ledger.stop(run_id)
        return report(self.ledger.find(run_id))

    def results(self, plan: str | None = None) -> Reports:
        """List the runs of validations that are kept, the latest first.

        :param plan: only those of a plan.
        :raises errors.NotFound: there is no such plan, and no run of it.
        """
        reports = [
            report(run)
            for run in self.ledger.every()
            if plan is None or run.plan == plan
        ]
        if plan is not None and not reports:
            self._plans.check_exists(plan)
        return reports

    def result(self, run_id: str, validation: str | None = None) -> Report:
        """Show a run of validations, or all about a validation in it.

        :param run_id: the run.
        :param validation: the name of a validation.
        """
        if validation is None:
            return report(self.ledger.find(run_id))
        return dataclasses.asdict(self.ledger.detail(run_id, validation))

    def _stack(self, source: origins.PlaybookSource, stack: str | None) -> str:
        if stack is not None or source.plan is None:
            return stack or ''
        return (
            source.plan.name
            if self._plans.stacks.find(source.plan.name)
            else ''
        )

    def _begun(
        self, source: origins.PlaybookSource, stack: str, run_id: str | None
    ) -> validation_runs.Run:
        """Return a run as it begins."""
        at = self._now()
        return validation_runs.Run(
            id=run_id or ledgers.new_id(at),
            source=source.name,
            plan=source.plan.name if source.plan else '',
            content_hash=source.plan.content_hash if source.plan else '',
            stack=stack,
            started_at=at,
        )

    def _record(
        self,
        plan: plans.Plan | None,
        required: abc.Mapping[str, abc.Set[str]],
        run: validation_runs.Run,
    ) -> None:
        """Record which of the groups that a deployment needs have passed."""
        if plan is None:
            return
        passed = {
            outcome.validation
            for outcome in run.outcomes
            if outcome.state is validation_runs.ValidationState.PASSED
        }
        for group, validations in required.items():
            if validations <= passed:
                deploy_records.record(
                    self._plans.annex(plan),
                    plan.content_hash,
                    group,
                    self._plans.clock(),
                )

    def _now(self) -> str:
        now = datetime.datetime.fromtimestamp(
            self._plans.clock(), datetime.UTC
        )
        return now.strftime('%Y-%m-%dT%H:%M:%SZ')


def _required(
    plan: plans.Plan | None, known: catalogue.Catalogue
) -> dict[str, set[str]]:
    """Return the groups that a deployment needs, with their validations.

    :raises errors.Invalid: the plan names them in an invalid way.
    """
    if plan is None:
        return {}
    groups = {
        group: {
            validation.id
            for validation in known.validations
            if group in validation.groups
        }
        for group in deploy_records.read(plan.environment)
    }
    # What nothing checks has not passed.
    return {group: of_it for group, of_it in groups.items() if of_it}


def report(run: validation_runs.Run) -> Report:
    """Return a run in terms of JSON, with a summary.

    Its ``success`` is null until it ends.
    """
    shown = dataclasses.asdict(run)
    shown['summary'] = run.counts
    shown['success'] = (
        run.state is validation_runs.ValidationState.PASSED
        if run.state.ended
        else None
    )
    return shown


class ValidationPhase(enum.StrEnum):
    """What the next step of a run of validations does."""

    RUN = 'run'
    READ = 'read'
    END = 'end'


@dataclasses.dataclass(frozen=True, kw_only=True)
class ValidationWork:
    """The state of a run of validations.

    :ivar repeats: how often the process that ran it has died.
    :ivar reason: what is known of the last death; '' for nothing.
    :ivar seconds: how long the run had lasted at the last poll.
    :ivar polls: the polls in a row since without news of it.
    """

    run_id: str
    phase: ValidationPhase = ValidationPhase.RUN
    repeats: int = 0
    reason: str = ''
    seconds: float = 0.0
    polls: int = 0


Step = jobs.JobStep[ValidationWork]


class ValidationJob:
    """Runs validations, and repeats a run whose process dies; a `jobs.Job`.

    :param given: the input of the workflow.
    """

    def __init__(
        self, core: ValidationOperations, given: abc.Mapping[str, Any]
    ) -> None:
        self._core = core
        self._given = given
        # Of the run that has ended with the step that was taken.
        self._report: Report | None = None
        self._phases: abc.Mapping[
            ValidationPhase,
            abc.Callable[[ValidationWork, jobs.CallOutcome], Step],
        ] = {
            ValidationPhase.RUN: self._run,
            ValidationPhase.READ: self._read,
            ValidationPhase.END: self._read,
        }

    def step(
        self, state: ValidationWork, outcome: jobs.CallOutcome | None
    ) -> Step:
        """Take a step; see `jobs.Job`.

        :raises errors.Error: that of the action that ran the playbooks.
        """
        outcome = outcome or jobs.CallOutcome(success=None)
        return self._phases[state.phase](state, outcome)

    def output(self, state: ValidationWork) -> Report:
        """Return what the workflow returns."""
        return {'run': self._report}

    def _run(self, state: ValidationWork, outcome: jobs.CallOutcome) -> Step:
        call = jobs.Call(
            kind=jobs.CallKind.ACTION,
            name='validations.run',
            input={**self._given, 'run_id': state.run_id},
        )
        state = dataclasses.replace(state, phase=ValidationPhase.READ)
        return jobs.JobStep(state=state, call=call)

    def _read(self, state: ValidationWork, outcome: jobs.CallOutcome) -> Step:
        # A process that was only slow runs it, or another repetition.
        is_elsewhere = state.repeats and outcome.code == errors.Exists.code
        if outcome.code and not is_elsewhere:
            raise _final(outcome)
        if outcome.reason and not is_elsewhere:
            state = dataclasses.replace(state, reason=outcome.reason)
        try:
            run = self._core.ledger.find(state.run_id)
        except errors.NotFound as exc:
            # Its process died before it had written anything. Or its record
            # was deleted after its end: it was there at the last poll.
            if outcome.success is not False:
                raise
            if state.repeats < REPEATS:
                return self._repeat(state, outcome)
            if not state.reason:
                raise
            raise errors.ServiceError(state.reason) from exc
        if run.state is ledgers.LOST:
            return self._lost(state, outcome, run)
        return (
            self._end(state, run)
            if run.state.ended
            else self._poll(state, run)
        )

    def _poll(self, state: ValidationWork, run: validation_runs.Run) -> Step:
        is_alive = run.seconds != state.seconds
        polls = 0 if is_alive else state.polls + 1
        if polls > _SILENT:
            # Its record would have said so, if the store told ages.
            reason = f'The process that ran it is silent: {state.reason}'
            return self._end(
                state,
                dataclasses.replace(
                    run, state=ledgers.LOST, reason=reason.rstrip(': ')
                ),
            )
        state = dataclasses.replace(state, polls=polls, seconds=run.seconds)
        return jobs.JobStep(state=state, next_look=_POLL)

    def _lost(
        self,
        state: ValidationWork,
        outcome: jobs.CallOutcome,
        run: validation_runs.Run,
    ) -> Step:
        if self._core.ledger.is_to_stop(state.run_id):
            return self._stopped(state, run)
        if state.repeats < REPEATS:
            return self._repeat(state, outcome)
        reason = ': '.join(filter(None, (run.reason, state.reason)))
        return self._end(state, dataclasses.replace(run, reason=reason))

    def _stopped(
        self, state: ValidationWork, run: validation_runs.Run
    ) -> Step:
        run = dataclasses.replace(
            run,
            state=validation_runs.ValidationState.STOPPED,
            reason='It was stopped',
        )
        self._core.ledger.write(run)
        return self._end(state, run)

    def _repeat(
        self, state: ValidationWork, outcome: jobs.CallOutcome
    ) -> Step:
        again = dataclasses.replace(state, repeats=state.repeats + 1, polls=0)
        return self._run(again, outcome)

    def _end(self, state: ValidationWork, run: validation_runs.Run) -> Step:
        self._report = report(run)
        return jobs.JobStep(
            state=dataclasses.replace(state, phase=ValidationPhase.END),
            success=run.state is validation_runs.ValidationState.PASSED,
            reason=run.reason,
        )


def _final(outcome: jobs.CallOutcome) -> errors.Error:
    """Return the error of an action, which a job does not ride out."""
    fields = {'code': outcome.code, 'message': outcome.reason}
    error = errors.restore(fields)
    if isinstance(error, errors.Unavailable | errors.PlanBusy):
        return errors.ServiceError(outcome.reason)
    return error
