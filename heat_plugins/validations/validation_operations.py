# SPDX-License-Identifier: Apache-2.0
"""The operations on validations, in terms of JSON.

Commands call them directly, or let Mistral's actions call them. Where a method
takes ``plan``, ``container`` and ``object``, or ``package``, one of them names
the source of the playbooks: the folder ``validations`` of a plan, a tarball in
the object store, or a Python package on the machine that runs them.
"""

from collections import abc
import contextlib
import dataclasses
import datetime
from typing import Any, Final

from heat_plugins import errors
from heat_plugins import jobs
from heat_plugins import masking
from heat_plugins.objectstore import parcels
from heat_plugins.plans import plan_service
from heat_plugins.plans.content import plans
from heat_plugins.plans.deploy import deploy_records
from heat_plugins.validations import catalogue
from heat_plugins.validations import inventory
from heat_plugins.validations import playbooks
from heat_plugins.validations import running
from heat_plugins.validations import validation_ledger as ledgers

# Seconds until the next poll of a run whose process is alive.
_POLL: Final = 20


def read_secrets(given: Any) -> tuple[abc.Mapping[str, Any], str]:
    """Return the secret variables of a run, and its key for ssh.

    :raises errors.Invalid: they are not a map of these; the message quotes
        nothing.
    """
    wrong = errors.Invalid(
        'secrets must be a map with variables, a map, and ssh_key, a text'
    )
    if not isinstance(given, abc.Mapping):
        raise wrong
    variables, key = given.get('variables') or {}, given.get('ssh_key') or ''
    if (
        given.keys() - {'variables', 'ssh_key'}
        or not isinstance(variables, abc.Mapping)
        or not isinstance(key, str)
    ):
        raise wrong
    return variables, key


Report = dict[str, Any]
Reports = list[Report]


class ValidationOperations:
    """The operations on the validations of a project.

    :param machine: for the playbooks; by default this one.
    """

    def __init__(
        self,
        plans: plan_service.Plans,
        *,
        machine: running.Machine | None = None,
    ) -> None:
        self._plans = plans
        self._machine = machine or running.Machine()
        self.ledger = ledgers.Ledger(plans.store)

    def list(
        self,
        plan: str | None = None,
        container: str | None = None,
        object: str | None = None,
        package: str | None = None,
        groups: abc.Collection[str] = (),
        *,
        source: catalogue.PlaybookSource | None = None,
    ) -> Report:
        """List the validations of a plan, an object or a package.

        :param plan: a plan, in whose folder validations they are.
        :param container: of the object.
        :param object: a tarball with playbooks.
        :param package: a Python package that is installed here.
        :param groups: a list of groups; only those in one of them.
        :returns: a map of validations and warnings.
        """
        source = source or catalogue.find_playbooks(
            self._plans, plan, container, object, package, complete=False
        )
        listed = catalogue.read(source.content)
        chosen = listed.choose(groups=groups)
        return {
            'validations': [
                dataclasses.asdict(validation) for validation in chosen
            ],
            'warnings': [*listed.warnings],
        }

    def required(self, plan: str) -> Report:
        """List the groups that must pass before a plan is deployed.

        :param plan: its name.
        :returns: a map of groups.
        """
        loaded = self._plans.load(plan)
        return {'groups': [*deploy_records.required(loaded.environment)]}

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
        source: catalogue.PlaybookSource | None = None,
        tell: running.Tell = lambda run: None,
        abandoned: abc.Callable[[], bool] = lambda: False,
    ) -> Report:
        """Run validations, and wait for their end.

        The operator of this Mistral must permit it.

        :param plan: a plan, in whose folder validations they are.
        :param container: of the object.
        :param object: a tarball with playbooks.
        :param package: a Python package that is installed here.
        :param validations: a list of names; without it, and groups, all.
        :param groups: a list of groups.
        :param stack: the stack with the servers; by default the plan's stack,
            if there is one. Empty: the machine of the executor alone.
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
        # A command gives files, which Mistral cannot.
        source = source or catalogue.find_playbooks(
            self._plans, plan, container, object, package, complete=True
        )
        self._machine.check()
        known = catalogue.read(source.content)
        chosen = known.choose(validations, groups)
        if not chosen:
            raise errors.NotFound(
                f'There is no validation in {source.name}; a validation is a '
                'playbook whose first play has vars.metadata'
            )
        required: tuple[str, ...] = ()
        plan_name = ''
        if source.plan:
            required = deploy_records.required(source.plan.environment)
            plan_name = source.plan.name
        if stack is None:
            deployed = plan_name and self._plans.stacks.find(plan_name)
            stack = plan_name if deployed else ''
        at = self._now()
        run = ledgers.ValidationRun(
            id=run_id or ledgers.new_id(at),
            source=source.name,
            plan=plan_name,
            content_hash=source.plan.content_hash if source.plan else '',
            stack=stack,
            started_at=at,
        )
        with parcels.opened(self._plans.store, secrets or {}) as given:
            hidden, key = read_secrets(given)
            order = playbooks.ValidationOrder(
                validations=chosen,
                content=source.content,
                hosts=inventory.grouped(
                    inventory.hosts(self._plans.stacks, stack)
                    if stack
                    else [inventory.LOCALHOST],
                    host_groups or {},
                ),
                login=inventory.Login(connection=connection, user=user),
                variables={**(variables or {}), **hidden},
                key=key,
                timeout=timeout,
                at_once=at_once,
                secrets=tuple(masking.texts([hidden, key])),
            )
            self.ledger.begin(run)
            run = running.Runner(
                self.ledger,
                self._machine,
                run,
                order,
                tell=tell,
                abandoned=abandoned,
                conclude=lambda run: self._record(
                    source.plan, required, known, run
                ),
            ).run()
        # The run counts, even if former ones cannot be deleted.
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
        """
        return [
            report(run)
            for run in self.ledger.every()
            if plan is None or run.plan == plan
        ]

    def result(self, run_id: str, validation: str | None = None) -> Report:
        """Show a run of validations, or the details of one validation.

        :param run_id: the run.
        :param validation: the name of a validation.
        """
        if validation is None:
            return report(self.ledger.find(run_id))
        return dataclasses.asdict(self.ledger.detail(run_id, validation))

    def _record(
        self,
        plan: plans.Plan | None,
        required: abc.Iterable[str],
        known: catalogue.Catalogue,
        run: ledgers.ValidationRun,
    ) -> None:
        """Record the groups required for a deployment that have passed."""
        passed = {
            outcome.validation
            for outcome in run.outcomes
            if outcome.state is ledgers.ValidationState.PASSED
        }
        for group in required:
            wanted = {
                validation.id
                for validation in known.validations
                if group in validation.groups
            }
            # A group without validations has not passed.
            if plan and wanted and wanted <= passed:
                deploy_records.record(
                    self._plans.annex(plan),
                    plan.content_hash,
                    group,
                    self._plans.clock(),
                )

    def _now(self) -> str:
        """Return the time for people."""
        now = datetime.datetime.fromtimestamp(
            self._plans.clock(), datetime.UTC
        )
        return now.strftime('%Y-%m-%dT%H:%M:%SZ')


def report(run: ledgers.ValidationRun) -> Report:
    """Return a run in terms of JSON, with a summary.

    Its ``success`` is null until it ends.
    """
    passed = run.state is ledgers.ValidationState.PASSED
    return {
        **dataclasses.asdict(run),
        'summary': run.counts,
        'success': passed if run.state.ended else None,
    }


@dataclasses.dataclass(frozen=True, kw_only=True)
class ValidationWork:
    """The state of a run of validations.

    :ivar called: whether the action that runs the playbooks was called.
    :ivar reason: of the failure of that action; '' without one.
    """

    run_id: str
    called: bool = False
    reason: str = ''


Step = jobs.JobStep[ValidationWork]


class ValidationJob:
    """A run of validations by an action of Mistral; a `jobs.Job`.

    :param given: the input of the workflow.
    """

    def __init__(
        self, core: ValidationOperations, given: abc.Mapping[str, Any]
    ) -> None:
        self._core = core
        self._given = given
        # The report of the run, once the step has found that it has ended.
        self._report: Report | None = None

    def step(
        self, state: ValidationWork, outcome: jobs.CallOutcome | None
    ) -> Step:
        """Take a step; see `jobs.Job`.

        :raises errors.Error: that of the action that ran the playbooks.
        """
        if not state.called:
            call = jobs.Call(
                kind=jobs.CallKind.ACTION,
                name='validations.run',
                input={**self._given, 'run_id': state.run_id},
            )
            state = dataclasses.replace(state, called=True)
            return jobs.JobStep(state=state, call=call)
        if outcome is not None:
            if outcome.code:
                error = errors.restore(
                    {'code': outcome.code, 'message': outcome.reason}
                )
                # A job would retry after these, with the same outcome.
                if isinstance(error, errors.Unavailable | errors.PlanBusy):
                    error = errors.ServiceError(outcome.reason)
                raise error
            state = dataclasses.replace(state, reason=outcome.reason)
        try:
            run = self._core.ledger.find(state.run_id)
        except errors.NotFound:
            if state.reason:
                raise errors.ServiceError(state.reason) from None
            raise
        if not run.state.ended:
            # Its process is alive, or has died and does not count as lost yet.
            return jobs.JobStep(state=state, next_look=_POLL)
        if run.state is ledgers.ValidationState.LOST:
            reason = ': '.join(filter(None, (run.reason, state.reason)))
            run = dataclasses.replace(run, reason=reason)
        self._report = report(run)
        success = run.state is ledgers.ValidationState.PASSED
        return jobs.JobStep(state=state, success=success, reason=run.reason)

    def output(self, state: ValidationWork) -> Report:
        """Return the output of the workflow."""
        return {'run': self._report}
