# SPDX-License-Identifier: Apache-2.0
"""Attempts to run an action on a server: deliver, read the result, withdraw.

This is the one place for that, for a run on its own and for a member of an
operation alike. It writes no record: the caller, who keeps that of a run,
writes the run that a method returns.

With a stack or deployment that is deleted, all its runs are withdrawn. The
container holds their records, and with those all knowledge of what was
created for them in Heat. So that is deleted before the container.

Another process may be delivering a run just then, and may no longer be
permitted to undo it: with a stack go its trusts. So `withdraw_all` revokes the
announcement of the run, see `objectstore.exclusive`, and reads its record once
more. The announcement stays in the listing: if this fails or dies, the next
attempt finds the run by it.

Of a run with an unreadable record only the name is known. It may still run, so
nothing takes it for ended: as long as it is announced, its action is refused
on that deployment, until a user deletes it.
"""

from collections import abc
import contextlib
import dataclasses
import threading

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins import heat_values
from heat_plugins import masking
from heat_plugins import tokens
from heat_plugins.configs import actions
from heat_plugins.configs import hidden_inputs
from heat_plugins.configs import hooks
from heat_plugins.runs import orchestration
from heat_plugins.runs import run_objects
from heat_plugins.runs import runs
from heat_plugins.runs import services
from heat_plugins.runs.fleet.records import layout
from heat_plugins.runs.records import record_names
from heat_plugins.runs.records import records
from heat_plugins.runs.start import schema
from heat_plugins.runs.start import targets
from heat_plugins.signals import body
from heat_plugins.signals import transport_names

LOG = foreign.logger(__name__)

#: The most bytes of a report.
REPORT_LIMIT = 16 * 1024

# For how many seconds to believe that a stack is there.
_FRESH = 2.0

_MESSAGE_LENGTH = 200

_SIGNATURES = masking.Mask()


def parse_report(
    content: bytes, mask: masking.Mask = _SIGNATURES
) -> tuple[float | None, str | None]:
    """Return percent and message of a report; None for what is unusable.

    :param mask: masks secrets in its message.

    :raises errors.BadContent: it is no JSON map.
    """
    details = body.parse(content)
    percent, message = details.get('progress'), details.get('message')
    if isinstance(percent, bool) or not isinstance(percent, (int, float)):
        percent = None
    if isinstance(message, str):
        text = ' '.join(mask.text(message).split())
        message = foreign.line(text, _MESSAGE_LENGTH)
    return (
        # Before it becomes a float, which not every whole number can.
        None if percent is None else float(min(100, max(0, percent))),
        message if isinstance(message, str) and message else None,
    )


def recorded(run: runs.Run) -> run_objects.Expected:
    """Return what the record of a run says of its result.

    Without its config the hidden values are unknown.
    """
    return run_objects.Expected(
        declared=run.declared, mask=masking.Mask(everything=bool(run.hidden))
    )


def deployment_gone(run: runs.Run) -> str:
    """Return why a run ends whose deployment Heat no longer has.

    The stack may still have the resource: Heat withdraws the deployment of an
    action that times out, and creates it again for the next one.
    """
    return (
        f'Deployment {run.resource} of stack {run.stack_name} was deleted or '
        'withdrawn from its server'
    )


class Attempts:
    """Delivers runs, reads what their servers send, and ends them.

    It is safe for threads.

    :param check: raises if another process may be in charge of the runs.
    :param describe: returns what to expect of a run whose config is gone.
    :param is_proved: whether the records are, see `withdraw`.
    """

    def __init__(
        self,
        tools: services.Services,
        check: abc.Callable[[], None] = lambda: None,
        describe: abc.Callable[[runs.Run], run_objects.Expected] = recorded,
        *,
        is_proved: bool = False,
    ) -> None:
        self._tools = tools
        self._check = check
        self._describe = describe
        self._is_proved = is_proved
        # By run: what it was given, and the config that was made for it.
        self._expected: dict[str, run_objects.Expected] = {}
        self._configs: dict[str, str] = {}
        # Whether stacks are gone, and when that was asked.
        self._stacks: dict[str, tuple[float, bool]] = {}
        self._lock = threading.Lock()

    # Delivering

    def draft(
        self, run: runs.Run, target: targets.Target, log_limit: int
    ) -> heat_values.DerivedConfig:
        """Return the config of a run, with the inputs that agents expect.

        What the stack's own config holds to signal Heat with, passwords among
        it, is left out: this server is to signal here and nowhere else.

        :param log_limit: the most bytes of what its server prints.
        :raises errors.Refused: the target does not have the action, or the
            inputs of the run do not fit.
        """
        config, tool = target.config, target.tool(run.action)
        values = schema.values(target.declared, run.inputs, target.current)
        added = {
            'deploy_server_id': target.server_id,
            'deploy_action': run.action,
            'deploy_stack_id': target.current.get('deploy_stack_id') or '',
            'deploy_resource_name': target.resource_name,
            'deploy_signal_transport': transport_names.TEMP_URL_POLL,
            'deploy_signal_verb': 'PUT',
            body.TIMEOUT_INPUT: str(run.timeout),
            **self._own_inputs(run, log_limit),
        }
        types = {
            each['name']: each.get('type')
            for each in target.declared
            if each['name'] in values
        }
        inputs = actions.agent_inputs(
            [
                # A default would be checked against the type once more, for
                # nothing.
                {
                    'name': name,
                    'type': types.get(name) or 'String',
                    'value': value,
                }
                for name, value in {**values, **added}.items()
            ],
            tool,
        )
        derived = heat_values.DerivedConfig(
            name=f'{config.name or target.resource_name}-{run.action}',
            group=config.group,
            config=actions.for_server(config.group, config.config),
            inputs=inputs,
            outputs=config.outputs,
            options=hidden_inputs.changed(
                config.options, target.current, inputs
            ),
        )
        self._expected[run.id] = run_objects.Expected.by(derived)
        return derived

    def _own_inputs(self, run: runs.Run, log_limit: int) -> dict[str, str]:
        """Return the inputs by which the server of a run sends, and asks."""
        objects = self._tools.objects(run)
        with self._lock:
            # The first of many threads asks for all.
            signer = self._tools.sign(objects.container)
        deadline = self._tools.clock() + run.timeout
        return objects.inputs(signer, deadline, log_limit)

    def deliver(
        self,
        run: runs.Run,
        draft: abc.Callable[[], heat_values.DerivedConfig],
    ) -> runs.Run:
        """Give a run to its server.

        Called again after Heat has not answered, it gives the server the
        same config: an agent runs none twice.

        :param draft: returns the config of the run.
        :raises errors.Error: Heat refuses it.
        """
        if not self.has_config(run):
            self._configs[run.id] = self._tools.heat.create_config(draft())
        run = self.known(run)
        self._check()
        row_id = self._tools.heat.create_deployment(
            config_id=str(run.config_id),
            server_id=run.server_id,
            action=run.action,
            # By this it is found again if we die before the next line.
            reason=tokens.of_run(run.id),
        )
        return dataclasses.replace(
            run,
            state=runs.State.WAITING,
            reason=runs.UNANSWERED,
            row_id=row_id,
        )

    def has_config(self, run: runs.Run) -> bool:
        """Say whether `deliver` has made the config of a run."""
        return run.id in self._configs

    def known(self, run: runs.Run) -> runs.Run:
        """Return a run with the config that was made for it, if one was."""
        config_id = self._configs.get(run.id, run.config_id)
        return dataclasses.replace(run, config_id=config_id)

    def adopt(
        self, run: runs.Run, *, resumes: bool = False
    ) -> runs.Run | None:
        """Return a run as another process has delivered it.

        :param resumes: whether that process may have died before it has told
            the server.
        :returns: None if nothing was delivered.
        """
        self._check()
        rows = marked(self._tools.heat, run.server_id, run.id)
        if not rows:
            return None
        if resumes:
            self._tell(rows[0])
        return dataclasses.replace(
            run,
            state=runs.State.WAITING,
            reason=runs.UNANSWERED,
            # A withdrawal finds what was delivered twice.
            row_id=rows[0].id if len(rows) == 1 else None,
            config_id=rows[0].config_id,
        )

    def _tell(self, row: heat_values.Deployment) -> None:
        """Tell a server again what it must run.

        A refusal must not keep others from their runs; if the server was
        never told, the run times out.
        """
        try:
            self._tools.heat.tell(row)
        except errors.Unavailable:
            raise
        except errors.NotFound:
            pass
        except errors.Error as exc:
            LOG.warning(
                'Cannot tell server %(server)s again what it must run: '
                '%(error)s',
                {'server': row.server_id, 'error': exc},
            )

    # What a server sends

    def reported(self, run: runs.Run) -> runs.Run:
        """Return a run with what its server reports of its progress.

        :raises errors.NoObject: there is no report.
        """
        objects = self._tools.objects(run)
        sent = self._tools.store.fetch(
            objects.container, objects.report, REPORT_LIMIT
        )
        try:
            progress, message = parse_report(
                sent.content, self._known_of(run).mask
            )
        except errors.BadContent as exc:
            progress, message = None, f'(its report: {exc})'
        return dataclasses.replace(
            run,
            **runs.begun(run, self._tools.clock()),
            progress=progress,
            message=message,
        )

    def answered(self, run: runs.Run) -> runs.Run:
        """Return a run as its result ends it.

        :raises errors.NoObject: there is none, or it was taken.
        """
        result = self._result(run)
        if result.is_late(run.deadline):
            run = self._overdue(run, run.deadline) or run
            return dataclasses.replace(run, **result.late(run.reason))
        return dataclasses.replace(
            run,
            state=result.state,
            reason=result.outcome.reason,
            ended_at=max(int(result.at), run.started_at),
            **self._tools.objects(run).keep(result.outcome),
        )

    def answered_late(self, run: runs.Run) -> runs.Run:
        """Return a run that has ended with the result that came later.

        :raises errors.NoObject: there is none, or it was taken.
        """
        run = dataclasses.replace(run, **self._result(run).late(run.reason))
        self._expected.pop(run.id, None)
        return run

    def _result(self, run: runs.Run) -> run_objects.Result:
        return self._tools.objects(run).fetch(
            lambda: self._known_of(run), run.inputs, self._tools.clock()
        )

    def _known_of(self, run: runs.Run) -> run_objects.Expected:
        """Return what to expect of a run of any process."""
        if run.id not in self._expected:
            self._expected[run.id] = self._asked(run) or self._describe(run)
        return self._expected[run.id]

    def _asked(self, run: runs.Run) -> run_objects.Expected | None:
        """Ask Heat for the config of a run, unless its record says it all."""
        if run.operation is None and not run.hidden:
            return None
        config_ids = [run.config_id] if run.config_id else []
        if not config_ids:
            rows = marked(self._tools.heat, run.server_id, run.id)
            config_ids = [row.config_id for row in rows]
        with contextlib.suppress(errors.NotFound):
            for config_id in config_ids:
                config = self._tools.heat.config(config_id)
                return run_objects.Expected.by(config)
        return None

    # Why runs end

    def expired(self, run: runs.Run) -> runs.Run:
        """Return a run as it stands if its time is over.

        It has ended, or its server has sent a report that no listing shows.
        """
        now = self._tools.clock()
        ended = self._overdue(run, now)
        if ended is not None and now < run.deadline:
            with contextlib.suppress(errors.NoObject):
                return self.reported(run)
        return ended or run

    @staticmethod
    def _overdue(run: runs.Run, now: float) -> runs.Run | None:
        """Return a run as the end of its time ends it; None if it does not."""
        over = runs.overdue(run, run.timeout, run.delivery_timeout, now)
        if over is None:
            return None
        ended_at, reason = over
        started = run.reported_at is not None
        parts = [
            f'{reason}.',
            body.explained(started=started, config_id=run.config_id),
        ]
        if run.unknown_hook and not started:
            parts.append(hooks.warning(run.unknown_hook))
        return dataclasses.replace(
            run,
            state=runs.State.TIMED_OUT,
            reason=' '.join(parts),
            ended_at=ended_at,
        )

    def cancelled(self, run: runs.Run, reason: str) -> runs.Run:
        """Return a run as it ends now without a result."""
        return dataclasses.replace(
            run,
            state=runs.State.CANCELLED,
            reason=reason,
            ended_at=int(self._tools.clock()),
        )

    def hinted(self, run: runs.Run) -> runs.Run:
        """Return a run with what may keep it from starting that waits long."""
        age = self._tools.clock() - run.started_at
        if (
            run.state is not runs.State.WAITING
            or not run.unknown_hook
            or age < hooks.PATIENCE
        ):
            return run
        reason = f'{runs.UNANSWERED}. {hooks.warning(run.unknown_hook)}'
        return dataclasses.replace(run, reason=reason)

    def gone(
        self, run: runs.Run, existing: abc.Container[str] | None = None
    ) -> str | None:
        """Return why a run cannot go on; None if it can.

        Its stack or deployment is deleted, or what was made for the run.

        :param existing: the deployments that there are; None to ask Heat.
        """
        if self.is_stack_gone(run.stack_id):
            return f'Stack {run.stack_name} was deleted'
        is_of_stack = not (run.standalone or run.guarded)
        if is_of_stack and not self._is_there(run.deployment_id, existing):
            return deployment_gone(run)
        if run.row_id and not self._is_there(run.row_id, existing):
            return 'A user has deleted its deployment in Heat'
        return None

    def _is_there(
        self, deployment_id: str, existing: abc.Container[str] | None
    ) -> bool:
        if existing is not None:
            return deployment_id in existing
        with contextlib.suppress(errors.NotFound):
            self._tools.heat.deployment(deployment_id)
            return True
        return False

    def is_stack_gone(self, stack_id: str) -> bool:
        """Ask Heat for a stack; once for all runs that are looked at."""
        asked_at, gone = self._stacks.get(stack_id, (-_FRESH, False))
        now = self._tools.clock()
        if now - asked_at >= _FRESH:
            gone = True
            with contextlib.suppress(errors.NotFound):
                gone = self._tools.heat.stack(stack_id).gone
            self._stacks[stack_id] = now, gone
        return gone

    # Ending

    def stop(self, run: runs.Run) -> runs.Run:
        """Tell the server of a run to stop it; return the run.

        It may have started the run, or may fetch it just now.
        """
        expires = run.deadline + run_objects.MARGIN
        lifetime = max(60, int(expires - self._tools.clock()))
        with contextlib.suppress(errors.NoObject):
            self._tools.objects(run).request_stop(lifetime)
        return run

    def withdraw(self, run: runs.Run) -> bool:
        """Take a run from its server, and forget it; see `withdraw`."""
        self._check()
        was_there = withdraw(
            self._tools.heat, self.known(run), is_proved=self._is_proved
        )
        self.forget(run)
        return was_there

    def forget(self, run: runs.Run) -> None:
        """Forget what is known of a run."""
        self._expected.pop(run.id, None)
        self._configs.pop(run.id, None)


# By how many seconds Heat's clock may be behind, and which configs of one
# action to read, the newest of all first.
_CLOCKS, _FIRST = 60.0, slice(-32, None)

#: Those that were made last, as the ones of a leader that has died just now.
LAST = slice(32)


def withdraw(
    heat: orchestration.Deploying, run: runs.Run, *, is_proved: bool = False
) -> bool:
    """Take a run from its server, and delete what was made in Heat.

    A user who may only write into the container of a stack may have written
    the record. So nothing goes but what Heat shows to be of the run.

    :param is_proved: whether the record is proved, as that of an operation is.
    :returns: whether Heat has a deployment of it, or the record names one.
    """
    if is_proved and run.row_id is not None:
        rows = {run.row_id: run.config_id}
    else:
        rows = {row.id: row.config_id for row in _rows(heat, run)}
    for row_id in rows:
        heat.delete_deployment(row_id, run.server_id)
    for config_id in map(str, {run.config_id, *rows.values()} - {None}):
        is_known = is_proved or config_id in rows.values()
        if is_known or _is_config_of(heat, config_id, run):
            heat.delete_config(config_id)
    return bool(rows)


def delete_undelivered(
    heat: orchestration.Deploying,
    lost: abc.Sequence[runs.Run],
    known: abc.Container[str | None] = (),
    looks: slice = _FIRST,
) -> None:
    """Delete the configs of runs whose starter died before delivering them.

    No record names those. Only as many are looked at as a starter's death is
    worth.

    :param lost: runs of one action, for which Heat has no deployment.
    :param known: IDs of configs that records name.
    :param looks: which of the others; by default those that were made first
        since the runs were announced.
    """
    try:
        if lost:
            _delete_own(heat, lost, known, looks)
    except errors.Unavailable:
        raise
    except errors.Error as exc:
        # The config does no harm; a run that never ends does.
        LOG.warning(
            'Cannot delete software configs that may be left of %(runs)s: '
            '%(error)s',
            {'runs': ', '.join(run.id for run in lost), 'error': exc},
        )


def _delete_own(
    heat: orchestration.Deploying,
    lost: abc.Sequence[runs.Run],
    known: abc.Container[str | None],
    looks: slice,
) -> None:
    since = min(run.started_at for run in lost) - _CLOCKS
    recent = heat.recent_configs(f'-{lost[0].action}', since)
    unknown = [each for each in recent if each not in known]
    for config_id in unknown[looks]:
        with contextlib.suppress(errors.NotFound):
            config = heat.config(config_id)
            if any(_has_url_of(config, run) for run in lost):
                heat.delete_config(config_id)


def _rows(
    heat: orchestration.Deploying, run: runs.Run
) -> list[heat_values.Deployment]:
    """Return the deployments that Heat has for a run.

    If the one of its record is gone, its server is told again, see
    `orchestration.Deploying.delete_deployment`.
    """
    if run.row_id is None:
        return marked(heat, run.server_id, run.id)
    try:
        row = heat.deployment(run.row_id)
    except errors.NotFound:
        heat.delete_deployment(run.row_id, run.server_id)
        return []
    if tokens.is_of_run(row.reason, run.id):
        return [row]
    _warn_of_foreign(run.id, f'deployment {row.id}')
    return []


def _is_config_of(
    heat: orchestration.Deploying, config_id: str, run: runs.Run
) -> bool:
    """Say whether a config was made for a run: it has a URL of its result."""
    try:
        config = heat.config(config_id)
    except errors.NotFound:
        return False
    if _has_url_of(config, run):
        return True
    _warn_of_foreign(run.id, f'software config {config_id}')
    return False


def _has_url_of(config: heat_values.Config, run: runs.Run) -> bool:
    name = run.id
    if run.operation is not None:
        name = layout.result(*layout.attempt_of(run.id))
    return any(
        f'/{name}?' in str(each.get('value'))
        for each in config.inputs
        if each.get('name') == run_objects.SIGNAL_ID
    )


def _warn_of_foreign(run_id: str, what: str) -> None:
    LOG.warning(
        'The record of run %(run)s names %(what)s, which was not made for '
        'it; heat-plugins leaves that alone. A user who may write into the '
        "container of the run's stack has changed the record",
        {'run': run_id, 'what': what},
    )


def marked(
    heat: orchestration.Deploying, server_id: str, run_id: str
) -> list[heat_values.Deployment]:
    """Return the deployments of a server that were made for a run."""
    return [
        row
        for row in heat.deployments(server_id)
        if tokens.is_of_run(row.reason, run_id)
    ]


def withdraw_marked(
    heat: orchestration.Deploying,
    key: record_names.Key,
    server_id: str | None = None,
) -> None:
    """Withdraw a run of which only the name is known.

    What was made for it is found by its mark.

    :param server_id: the server, for when Heat has forgotten the deployment.
    """
    # That of a standalone run is its server.
    server_ids = {key.deployment_id, server_id or key.deployment_id}
    with contextlib.suppress(errors.NotFound):
        server_ids = {heat.deployment(key.deployment_id).server_id}
    for each in server_ids:
        for row in marked(heat, each, key.run_id):
            heat.delete_deployment(row.id)
            heat.delete_config(row.config_id)


def forget_unreadable(store: records.Records, key: record_names.Key) -> None:
    """Delete what is known of a run that was withdrawn from its server.

    The record goes last, so that a failure before that can be retried.
    """
    store.close(key)
    store.remove(key)
    LOG.warning(
        'Withdrew run %(run)s of %(action)s, whose record was unreadable, '
        'from its server, and deleted the record. If the server has started '
        'the script, it runs to its end',
        {'run': key.run_id, 'action': key.action},
    )


def withdraw_all(
    heat: orchestration.Deploying,
    store: records.Records,
    prefix: str = record_names.OPEN,
    server: abc.Callable[[], str | None] = lambda: None,
) -> list[str]:
    """Withdraw runs of a deleted stack or deployment from their servers.

    Their records stay: a process that waits for a run sees that the container
    or the deployment is gone. This deletes unreadable records, as no process
    can settle their runs.

    It logs a run that cannot be withdrawn, and continues with the others.

    :param prefix: which; by default all of the container.
    :param server: returns the server of the deployment that goes, of which
        Heat may know no more; asked for what cannot be read.
    :returns: the ids of those that had not ended.
    """
    withdrawn = []
    with contextlib.suppress(errors.NoObject):
        for key in store.opened(prefix):
            # What the store answers ends this: the container may be kept
            # until that has passed.
            if _withdraw_last(heat, store, key, server):
                withdrawn.append(key.run_id)
    return withdrawn


def _withdraw_last(
    heat: orchestration.Deploying,
    store: records.Records,
    key: record_names.Key,
    server: abc.Callable[[], str | None],
) -> bool:
    """Withdraw a run from its server; False if that has none yet."""
    try:
        run = store.read(key)
        if run is None or run.state is runs.State.STARTING:
            store.revoke(key)
            run = store.read(key)
    except errors.UnreadableRun:
        if not _succeeds(key, lambda: withdraw_marked(heat, key, server())):
            return False
        forget_unreadable(store, key)
        return True
    if run is None:
        store.close(key)
        return False
    return _succeeds(key, lambda: _withdraw_starting(heat, run))


def _withdraw_starting(heat: orchestration.Deploying, run: runs.Run) -> None:
    """Withdraw a run, and what a starter that has died may have left of it."""
    withdraw(heat, run)
    if run.ended and run.config_id is None:
        delete_undelivered(heat, [run])


def _succeeds(key: record_names.Key, call: abc.Callable[[], None]) -> bool:
    """Say whether a run was withdrawn; log why it was not."""
    try:
        call()
    except Exception as exc:
        LOG.warning(
            'Cannot withdraw run %(run)s of a deleted stack or deployment '
            'from its server: %(error)s',
            {'run': key.run_id, 'error': exc},
            exc_info=not isinstance(exc, errors.Error),
        )
        return False
    return True
