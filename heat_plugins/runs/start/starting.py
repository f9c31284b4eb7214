# SPDX-License-Identifier: Apache-2.0
"""Handing a run to its server; what was made is undone if a step fails."""

from collections import abc
import contextlib
import dataclasses
import time
from typing import Any

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins import tokens
from heat_plugins.configs import hidden_inputs
from heat_plugins.configs import hooks
from heat_plugins.objectstore import keys
from heat_plugins.objectstore import stores
from heat_plugins.runs import orchestration
from heat_plugins.runs import run_claims
from heat_plugins.runs import runs
from heat_plugins.runs.fleet import other_operations
from heat_plugins.runs.fleet.records import books
from heat_plugins.runs.records import record_names
from heat_plugins.runs.records import records
from heat_plugins.runs.start import derived
from heat_plugins.runs.start import schema
from heat_plugins.runs.start import targets
from heat_plugins.signals import live

LOG = foreign.logger(__name__)

#: Seconds for which a run's URL outlives its time limit: clocks differ, and
#: a result that comes late is worth knowing.
MARGIN = 3600

#: Returns what signs the URLs of a container.
Sign = abc.Callable[[str], keys.Signer]

#: The digests to sign with, the most wanted first.
DIGESTS = ('sha256', 'sha512', 'sha1')


@dataclasses.dataclass(frozen=True, kw_only=True)
class Order:
    """What to run.

    :ivar inputs: what differs from the stack's own values.
    :ivar timeout: seconds for the whole of it; None: as many as the
        deployment has, or `runs.DEFAULT_TIMEOUT`.
    :ivar delivery_timeout: seconds until the server must have reported, for
        those that do; None: as many as the deployment has.
    :ivar repeats: the id of the run that is repeated.
    """

    action: str
    inputs: abc.Mapping[str, Any] = dataclasses.field(
        default_factory=dict, repr=False
    )
    timeout: int | None = None
    delivery_timeout: int | None = None
    repeats: str | None = None


def check(
    target: targets.Target, order: Order
) -> tuple[targets.Action, dict[str, Any]]:
    """Return the action that is wanted, and the values of its inputs.

    :raises errors.Refused: there is no such action, or the inputs do not
        fit.
    """
    action = target.action(order.action)
    values = schema.values(target.declared, order.inputs, target.current)
    return action, values


class Starter:
    """Starts runs.

    :param who: the user in whose name it is, for people to read.
    :param sign: returns what signs the URLs of a container, and makes it
        if need be; None: with whatever key it has, such as the engine's.
    :param known_hooks: the hooks that servers are known to have.
    :param log_limit: the bytes of what a run prints that are kept.
    """

    def __init__(
        self,
        heat: orchestration.Deploying,
        store: stores.ObjectStore,
        *,
        who: str,
        sign: Sign | None = None,
        known_hooks: abc.Collection[str] = hooks.HOOKS,
        log_limit: int = live.LIMIT,
        clock: abc.Callable[[], float] | None = None,
        sleep: abc.Callable[[float], None] = time.sleep,
    ) -> None:
        self._heat = heat
        self._store = store
        self._book = books.Book(store)
        self._who = who
        self._sign = sign or self._any_key
        self._known_hooks = known_hooks
        self._log_limit = log_limit
        self._clock = clock or store.now
        self._sleep = sleep

    def start(self, target: targets.Target, order: Order) -> runs.Run:
        """Start a run.

        :returns: the run; it has ended if another process ended it meanwhile.
        :raises errors.Refused: there is no such action, its inputs do not
            fit, or it runs already.
        :raises errors.NotFound: the stack is gone, or the deployment goes
            meanwhile.
        :raises errors.Error: Heat did not take it.
        :raises heat_plugins.errors.ServiceError: the object store
            did not.
        """
        action, values = check(target, order)
        # What was found may be long ago, and the container of a stack that
        # has gone would be made again, for good.
        if self._heat.stack(target.root.id).gone:
            raise errors.NotFound(
                f'Stack {target.root.name} is deleted or being deleted'
            )
        now = self._clock()
        found = records.Records(self._store, target.root.id)
        run = runs.Run(
            id=record_names.new_run_id(now),
            stack_id=target.root.id,
            stack_name=target.root.name,
            resource=target.path,
            deployment_id=target.deployment.id,
            server_id=target.deployment.server_id,
            server_name=target.server_name,
            action=action.name,
            state=runs.State.STARTING,
            reason='heat-plugins is delivering it to the server',
            started_at=int(now),
            started_by=self._who,
            timeout=order.timeout or target.timeout or runs.DEFAULT_TIMEOUT,
            delivery_timeout=(
                order.delivery_timeout or target.delivery_timeout
            ),
            inputs=derived.given(order.inputs),
            declared=[_declared(one) for one in target.config.outputs],
            hidden=hidden_inputs.names(target.config.options),
            repeats=order.repeats,
            standalone=target.standalone,
            guarded=target.guarded,
            unknown_hook=self._unknown_hook(action),
        )
        signer = self._sign(found.container)
        run_claims.Claims(
            found,
            other_operations.OtherOperations(
                self._heat, self._book, who=self._who, clock=self._clock
            ),
            clock=time.monotonic,
            sleep=self._sleep,
        ).claim(run)
        draft = derived.draft(
            target,
            action,
            values,
            urls=_urls(run, signer),
            timeout=run.timeout,
            log_limit=self._log_limit,
        )
        return self._hand_over(found, run, draft)

    def _unknown_hook(self, action: targets.Action) -> str | None:
        tool = action.tool or ''
        return None if hooks.is_known(tool, self._known_hooks) else tool

    def _any_key(self, container: str) -> keys.Signer:
        return keys.KeyKeeper(
            self._store, secret=None, digests=DIGESTS, overlap=None
        ).ensure(container)

    def _hand_over(
        self,
        found: records.Records,
        run: runs.Run,
        draft: orchestration.Draft,
    ) -> runs.Run:
        try:
            config_id = self._heat.create_config(draft)
            run = dataclasses.replace(run, config_id=config_id)
            row_id = self._heat.create_deployment(
                config_id=config_id,
                server_id=run.server_id,
                action=run.action,
                # By this it is found again if we die before the next line.
                reason=tokens.of_run(run.id),
            )
            run = dataclasses.replace(
                run,
                row_id=row_id,
                state=runs.State.WAITING,
                reason=runs.UNANSWERED,
            )
            if ended := _ended(found, run):
                # Who cancelled it may not have seen what we have made since.
                withdraw(self._heat, run)
                return ended
            found.write(run)
            if not found.is_open(run.key):
                if ended := _ended(found, run):
                    return ended
                # Nor may who revoked the announcement; see `orphans`.
                raise errors.NotFound(
                    f'Deployment {run.resource} or its stack was deleted '
                    f'while {run.action} started on it'
                )
        except BaseException:
            self._undo(found, run)
            raise
        return run

    def _undo(self, found: records.Records, run: runs.Run) -> None:
        """Undo a run that was not delivered, as far as possible."""
        try:
            try:
                withdraw(self._heat, run)
            except Exception:
                # The next process that reads it cleans up by its record.
                found.write(run)
                raise
            found.remove(run.key)
            found.close(run.key)
        except Exception as exc:
            LOG.warning(
                'Cannot clean up after run %(run)s, which did not start: '
                '%(error)s',
                {'run': run.id, 'error': exc},
            )


def _urls(run: runs.Run, signer: keys.Signer) -> derived.Urls:
    expires = run.deadline + MARGIN
    folder = record_names.log_folder(run.id)
    control = record_names.control_name(run.key)
    return derived.Urls(
        signal=signer.url(run.signal, expires),
        progress=signer.url(run.progress_signal, expires),
        log=signer.url(folder, expires, is_prefix=True),
        control=signer.url(control, expires, method='GET'),
    )


def withdraw(heat: orchestration.Deploying, run: runs.Run) -> None:
    """Take a run from its server, and delete what was made in Heat.

    A user who may only write into the container may have written the record.
    So nothing goes but what Heat shows to be of the run.
    """
    rows = _rows(heat, run)
    for row in rows:
        heat.delete_deployment(row.id)
        heat.delete_config(row.config_id)
    left = {run.config_id} - {None, *(row.config_id for row in rows)}
    for config_id in map(str, left):
        if _is_config_of(heat, config_id, run.id):
            heat.delete_config(config_id)


def _rows(
    heat: orchestration.Deploying, run: runs.Run
) -> list[orchestration.Deployment]:
    """Return the deployments that Heat has for a run."""
    if run.row_id is None:
        return marked(heat, run.server_id, run.id)
    try:
        row = heat.deployment(run.row_id)
    except errors.NotFound:
        return []
    if tokens.is_of_run(row.reason, run.id):
        return [row]
    _tell_foreign(run.id, f'deployment {row.id}')
    return []


def _is_config_of(
    heat: orchestration.Deploying, config_id: str, run_id: str
) -> bool:
    """Say whether a config was made for a run: it has a URL of its result."""
    try:
        config = heat.config(config_id)
    except errors.NotFound:
        return False
    signals = [
        str(one.get('value'))
        for one in config.inputs
        if one.get('name') == derived.SIGNAL_ID
    ]
    if any(f'/{run_id}?' in one for one in signals):
        return True
    _tell_foreign(run_id, f'software config {config_id}')
    return False


def _tell_foreign(run_id: str, what: str) -> None:
    LOG.warning(
        'The record of run %(run)s names %(what)s, which was not made for '
        'it; heat-plugins leaves that alone. A user who may write into the '
        "container of the run's stack has changed the record",
        {'run': run_id, 'what': what},
    )


def take_back(
    heat: orchestration.Deploying,
    *,
    run_id: str,
    server_id: str,
    row_id: str | None,
    config_id: str | None,
) -> None:
    """Delete what was made in Heat for a run whose record is proved.

    :param row_id: the deployment; if it is not known, what bears the mark of
        the run goes.
    """
    rows = {row_id: config_id}
    if row_id is None:
        rows = {
            row.id: row.config_id for row in marked(heat, server_id, run_id)
        }
    for row in rows:
        if row is not None:
            heat.delete_deployment(row)
    for config in {config_id, *rows.values()} - {None}:
        heat.delete_config(str(config))


def withdraw_marked(
    heat: orchestration.Deploying,
    key: record_names.Key,
    server_id: str | None = None,
) -> None:
    """Do the same for a run of which only the name is known.

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


def marked(
    heat: orchestration.Deploying, server_id: str, run_id: str
) -> list[orchestration.Deployment]:
    """Return the deployments of a server that were made for a run."""
    return [
        row
        for row in heat.deployments(server_id)
        if tokens.is_of_run(row.reason, run_id)
    ]


def _ended(found: records.Records, run: runs.Run) -> runs.Run | None:
    """Return a run as another process has ended it, if one has."""
    fresh = found.read(run.key)
    return fresh if fresh is not None and fresh.ended else None


def _declared(output: abc.Mapping[str, Any]) -> dict[str, Any]:
    return {
        'name': output['name'],
        'error_output': bool(output.get('error_output')),
    }
