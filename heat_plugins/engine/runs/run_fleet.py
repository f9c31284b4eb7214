# SPDX-License-Identifier: Apache-2.0
"""The servers of runs: what they are given, and how they answer.

All runs in one root stack share its hub, which polls for them together with
the deployments of the stack.
"""

from collections import abc
import contextlib
import functools
import json
import time
from typing import Any, TypeAlias
import uuid

from heat.common import context as heat_context
from heat.common import identifier
from heat.engine import stack as parser
from keystoneauth1 import exceptions as ks_exceptions
from oslo_config import cfg
from oslo_db import exception as db_exception

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins import heat_values
from heat_plugins import pools
from heat_plugins.deployments import deliveries
from heat_plugins.deployments import fleets
from heat_plugins.deployments import waits
from heat_plugins.engine import heat_types
from heat_plugins.engine import hubs
from heat_plugins.engine import process
from heat_plugins.engine import signing
from heat_plugins.engine import transports
from heat_plugins.engine.database import deployment_rows
from heat_plugins.engine.database import in_process
from heat_plugins.engine.database import resources
from heat_plugins.engine.database import rows
from heat_plugins.engine.database import server_metadata
from heat_plugins.engine.database import servers
from heat_plugins.engine.database import stack_reading
from heat_plugins.objectstore import cleaning
from heat_plugins.runs import ordering
from heat_plugins.runs import run_objects
from heat_plugins.runs import run_records
from heat_plugins.runs import run_store
from heat_plugins.runs import stepping
from heat_plugins.runs.targets import targets
from heat_plugins.signals import body
from heat_plugins.signals import watcher

LOG = foreign.logger(__name__)

#: Why a run ends whose deployment is no longer as heat-engine has made it.
CHANGED = 'Another client of Heat has deleted or changed its deployment'

_KEY_CHANGED = (
    "The TempURL key of the object store's account was changed, so the server "
    'can no longer send its result. Retry the run'
)

# After how long the store deletes what tells a server to stop.
_STOP_SECONDS = 3600

#: The resource that URLs of heat-api-cfn name, of which stacks have none:
#: heat-engine finds the target by the signature.
RESOURCE = 'heat-plugins-run'

# The keys of what Heat keeps with a server, and of what heat-plugins does.
_ACCESS, _SECRET, _USER = 'access_key', 'secret_key', 'user_id'
_OURS = 'heat_plugins_run_keys'

# Root stacks in which no run waits that are kept.
_IDLE_STACKS = 64

Key = run_store.TargetKey


#: Stores answers; returns those that count.
Settle = abc.Callable[[abc.Mapping[Key, stepping.Answer]], abc.Collection[Key]]


def load_stack(stack_id: str, project_id: str) -> Any:
    """Load a stack of a project, with its stored credentials.

    :raises errors.Denied: it has none that serve.
    :raises errors.Unavailable: the database does not answer.
    """
    denied = errors.Denied(
        'heat-engine cannot load the stack with its stored credentials; its '
        'log has the cause at debug level'
    )
    try:
        stack = parser.Stack.load(
            heat_context.get_admin_context(),
            stack_id=stack_id,
            use_stored_context=True,
        )
    except db_exception.DBError as exc:
        raise rows.unavailable(exc) from None
    except Exception as exc:
        LOG.debug('Stack %s cannot be loaded: %s', stack_id, exc)
        raise denied from None
    # Another project would find nothing, and take all for gone.
    if not stack.tenant_id == stack.context.project_id == project_id:
        raise denied
    return stack


def progress(
    project_id: str, run: run_records.RunRecord, number: int
) -> tuple[float | None, str | None]:
    """Return percent and message that the server of a target has reported.

    :raises Exception: it has reported none, or that cannot be told.
    """
    servers = RunServers(lambda answers: ())
    given = servers.given(project_id, run, [number])[number]
    stack_id = run.order.members[number].stack_id
    stack = servers.of_stack(project_id, stack_id)
    objects = stack.objects(run_store.key_of(run, number))
    content = stack.hub.store.get_object(
        objects.container, objects.report, run_objects.REPORT_LIMIT
    )
    return run_objects.parse_report(content, given.mask)


def clear(surplus: run_store.Surplus) -> None:
    """Delete the objects of a run.

    Those of a stack that is gone, or has no credentials that serve, go with
    its container.

    :raises errors.Unavailable: the object store or the database is away.
    """
    for stack_id in surplus.stack_ids:
        try:
            stack = load_stack(stack_id, surplus.project_id)
            hub = hubs.hub_for(stack, stack_id)
            hub.adopt(stack)
            for prefix in run_objects.folders(surplus.run_id):
                cleaning.delete_below(hub.store, hub.container, prefix)
        except errors.Unavailable:
            raise
        except errors.ServiceError as exc:
            LOG.debug(
                'Cannot delete objects of run %(run)s in stack %(stack)s; '
                'they go with its container: %(error)s',
                {'run': surplus.run_id, 'stack': stack_id, 'error': exc},
            )


class StackRuns:
    """What waits for servers in one root stack; see `waits.Waits`.

    One thread at a time may call `poll`; the other public methods but those
    of `fleets.Answers` are safe for threads.
    """

    def __init__(self, project_id: str, stack_id: str, settle: Settle) -> None:
        self.project_id = project_id
        self.stack_id = stack_id
        self._store_answers = settle
        self._wanted: dict[Key, deliveries.Delivery] = {}
        # As the last poll has waited for them, by their rows.
        self._waits: waits.Waits | None = None
        self._keys: dict[str, Key] = {}
        # When signals were written, and how their servers were stopped.
        self._sent: dict[str, tuple[float, str | None]] = {}
        self._counted: set[Key] = set()
        self._lost: dict[Key, stepping.Answer] = {}
        self._next_probe = 0.0
        #: When to poll next, by `time.monotonic`.
        self.due = 0.0

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits, and the hub waits for nothing of it."""
        return not (self._wanted or self._lost or self._waits)

    @functools.cached_property
    def stack(self) -> Any:
        """The root stack, with its stored credentials.

        :raises errors.Denied: it has none.
        """
        return load_stack(self.stack_id, self.project_id)

    @property
    def hub(self) -> hubs.Hub:
        """The hub that the stack has now; one that is idle may go."""
        return hubs.hub_for(self.stack, self.stack_id)

    # For runs

    def objects(self, key: Key) -> run_objects.RunObjects:
        """Return the objects of an attempt.

        :raises errors.ServiceError: there is no object store to be had.
        """
        self.hub.adopt(self.stack)
        return run_objects.RunObjects(
            self.hub.store, self.stack_id, key.run_id, key.number, key.attempt
        )

    def own_inputs(
        self,
        key: Key,
        timeout: int,
        log_limit: int,
        server_id: str,
        known: abc.Callable[[], abc.Mapping[str, heat_values.Server]],
    ) -> dict[str, str]:
        """Return the inputs by which the server of an attempt answers.

        :param known: returns servers, by ID.
        :raises errors.Error: it has no way to do so.
        """
        hub = self.hub
        try:
            if hub.signing.refusal is not None:
                # To ask again would cost a token and a request.
                raise hub.signing.refusal
            signer = hub.call(
                self.stack,
                # Else a deployment that goes may have dropped the container.
                lambda: hub.signing.signer(certain=self.is_idle),
            )
            deadline = signer.now() + timeout
            return self.objects(key).inputs(signer, deadline, log_limit)
        except errors.ServiceError as exc:
            if exc.may_pass:
                raise
            try:
                return cfn_inputs(self.stack, key, known()[server_id])
            except errors.Refused as refused:
                raise errors.Refused(f'{exc}. {refused}') from exc

    def add(self, key: Key, delivery: deliveries.Delivery) -> None:
        """Wait for the answer to a delivery."""
        self._wanted[key] = delivery
        self.due = 0.0

    def leave(self, key: Key) -> None:
        """Wait no longer for an attempt."""
        self._wanted.pop(key, None)

    def ask(
        self,
        key: Key,
        expected: run_objects.Expected,
        inputs: abc.Mapping[str, Any],
        *,
        reports: bool,
    ) -> stepping.Answer | None:
        """Return the result of an attempt that came after the last poll.

        :param expected: what it sends.
        :param reports: whether a report counts, too.
        :raises errors.ServiceError: that cannot be told.
        """
        objects = self.objects(key)
        with contextlib.suppress(errors.NoObject):
            result = objects.fetch(lambda: expected, inputs, time.time())
            objects.keep(result.outcome)
            return stepping.Answer(result=result)
        if reports and self.hub.store.has_object(
            objects.container, objects.report
        ):
            return stepping.Answer()
        return None

    def discard_all(self, key: Key) -> None:
        """Delete the objects of an attempt, before long."""
        objects = self.objects(key)
        self.discard([objects.result, objects.report, objects.control])

    def stop(self, key: Key) -> None:
        """Tell a server to stop an attempt.

        :raises errors.ServiceError: the object store does not take that.
        """
        self.objects(key).request_stop(_STOP_SECONDS)

    def poll(self) -> None:
        """Take the results that have come.

        :raises errors.ServiceError: what keeps it from that.
        """
        if self._waits and not self._wanted:
            # The stack may be gone, with its credentials.
            self._waits.leave(self._waits.each())
        if self.is_idle:
            return
        hub = self.hub
        if any(e.signalling.object_name for e in dict(self._wanted).values()):
            hub.adopt(self.stack)
        waiting = self._waiting(hub)
        try:
            waiting.collect(0.0)
        finally:
            self.due = time.monotonic() + hub.watcher.until_poll
            self._check_keys(hub)
            if self._lost:
                self._store_answers(self._lost)
                self._lost = {}
            if not waiting:
                hub.tidy()

    def _waiting(self, hub: hubs.Hub) -> waits.Waits:
        """Let the waits be those for the wanted deliveries; return them."""
        if not self._waits:
            self._waits = waits.Waits(self, hub.watcher, self._note_end)
        wanted = dict(self._wanted)
        self._keys = {each.deployment_id: key for key, each in wanted.items()}
        known = {each.task.member.id: each for each in self._waits.each()}
        self._waits.leave(
            [known[row_id] for row_id in known.keys() - self._keys.keys()]
        )
        self._waits.add(
            [
                (
                    fleets.Task(
                        member=fleets.Member(
                            id=each.deployment_id,
                            key=each.server_id,
                            server_id=each.server_id,
                        ),
                        action=each.action,
                        before=None,
                    ),
                    each,
                )
                for each in wanted.values()
                if each.deployment_id not in known
            ],
            time.monotonic(),
        )
        return self._waits

    def _check_keys(self, hub: hubs.Hub) -> None:
        """End attempts whose URLs were signed with a former key.

        What they have sent before counts.
        """
        now = time.monotonic()
        if now < self._next_probe:
            return
        self._next_probe = now + signing.PROBE_INTERVAL
        wanted = {
            key: each
            for key, each in dict(self._wanted).items()
            if each.signalling.object_name
        }
        if not wanted:
            return
        with contextlib.suppress(errors.ServiceError):
            signer = hub.signing.signer()
            for key, each in wanted.items():
                name = str(each.signalling.object_name)
                given = {i['name']: i.get('value') for i in each.draft.inputs}
                signed = signer.behind(
                    name, str(given.get(run_objects.SIGNAL_ID))
                )
                if not hub.signing.key_holds(
                    signed
                ) and not hub.store.has_object(hub.container, name):
                    self._lost[key] = stepping.Answer(
                        lost=_KEY_CHANGED, state=run_records.State.FAILED
                    )

    def _note_end(
        self, task: fleets.Task, failure: deliveries.Failure | None
    ) -> None:
        """Note that a server's config has gone, so that its try ends."""
        key = self._keys[task.member.id]
        self._wanted.pop(key, None)
        if key in self._counted:
            self._counted.remove(key)
        else:
            self._lost[key] = stepping.Answer(lost=CHANGED)

    # fleets.Answers

    def read(
        self, ids: abc.Collection[str]
    ) -> abc.Mapping[str, heat_values.DeploymentRow]:
        with deployment_rows.guarded(everything=True):
            return rows.visible(project_context(self.project_id), ids)

    def fetch(
        self, names: abc.Sequence[str]
    ) -> list[bytes | errors.ServiceError]:
        return pools.Pool(attempts=1).each(self._fetched, names)

    def _fetched(self, name: str) -> bytes | errors.ServiceError:
        """Fetch a result's body; note when the server has sent it."""
        store = self.hub.store
        try:
            sent = store.fetch(
                self.hub.container, name, run_objects.BODY_LIMIT
            )
        except errors.ServiceError as exc:
            return exc
        stopped = run_objects.stopped(sent.content)
        self._sent[name] = time.time() - sent.age, stopped
        return sent.content

    def discard(self, names: abc.Sequence[str]) -> None:
        for name in names:
            self.hub.discard(name)

    def settle(
        self, outcomes: abc.Mapping[watcher.Ticket, body.SignalOutcome]
    ) -> abc.Collection[watcher.Ticket]:
        answers = {}
        for ticket, outcome in outcomes.items():
            key = self._keys[ticket.deployment_id]
            self.objects(key).keep(outcome)
            unknown = time.time(), None
            at, stopped = self._sent.get(str(ticket.object_name), unknown)
            answers[key] = stepping.Answer(
                result=run_objects.Result(
                    outcome=outcome, at=at, stopped=stopped
                )
            )
        self._counted.update(self._store_answers(answers))
        for ticket in outcomes:
            self._sent.pop(str(ticket.object_name), None)
        return [
            ticket
            for ticket in outcomes
            if self._keys[ticket.deployment_id] in self._counted
        ]

    def begin(self, started: abc.Sequence[deliveries.Delivery]) -> None:
        self._store_answers(
            {
                self._keys[each.deployment_id]: stepping.Answer()
                for each in started
            }
        )


def cfn_inputs(
    stack: Any, key: Key, server: heat_values.Server
) -> dict[str, str]:
    """Return the inputs by which a server answers where no object store is.

    The user that Heat has made for a server signs its URLs: Keystone holds the
    key pair for as long as the server is in its stack, so it lives as long as
    an answer may come, and no server can answer for another. Heat gives a key
    pair to each server with POLL_SERVER_CFN. Others with a user get one when
    it is first needed; it is kept with their resource, and goes with their
    user.

    A URL has no Timestamp, which Keystone would refuse after 15 minutes. Its
    parameters name the run, the target and the attempt, so that no two have
    the same signature.

    :param stack: the root stack, with its stored credentials.
    :raises errors.Refused: it cannot answer so.
    :raises errors.Unavailable: Keystone or the database does not answer.
    """
    if lacking := transports.lacks(stack.clients, heat_values.CFN_SIGNAL):
        raise errors.Refused(lacking)
    with stack_reading.translated('read the key pair of a server'):
        access, secret = _key_pair(stack, server)
    # Heat makes its own of the same.
    base = cfg.CONF.heat_waitcondition_server_url or (
        stack.clients.client_plugin('heat').get_heat_cfn_url()
        + '/waitcondition'
    )
    named = identifier.ResourceIdentifier(
        resource_name=RESOURCE, **stack.identifier()
    )
    query = {
        'SignatureMethod': 'HmacSHA256',
        'SignatureVersion': '2',
        'AWSAccessKeyId': access,
        'run': key.run_id,
        'target': str(key.number),
        'attempt': str(key.attempt),
    }
    url = base.replace('/waitcondition', '/signal') + named.arn_url_path()
    return {
        heat_values.TRANSPORT_INPUT: heat_values.CFN_SIGNAL,
        run_objects.SIGNAL_ID: transports.signed(url, query, secret),
        'deploy_signal_verb': 'POST',
        body.REPORTS_INPUT: 'true',
    }


def _key_pair(stack: Any, server: heat_values.Server) -> abc.Sequence[str]:
    """Return the access key and the secret key of the user of a server.

    Keystone makes them where Heat has not.
    """
    for each in server.resources:
        kept = resources.secrets(stack.context, each.number)
        if _ACCESS in kept and _SECRET in kept:
            return kept[_ACCESS], kept[_SECRET]
        if _OURS in kept:
            return [*map(str, json.loads(kept[_OURS]))]
        if _USER not in kept:
            continue
        keystone = stack.clients.client('keystone')
        try:
            made = keystone.create_stack_domain_user_keypair(
                user_id=kept[_USER], project_id=stack.stack_user_project_id
            )
        except (
            ks_exceptions.ConnectionError,
            ks_exceptions.HttpServerError,
        ) as exc:
            raise errors.Unavailable(
                f'Keystone does not answer: {type(exc).__name__}'
            ) from exc
        except ks_exceptions.ClientException as exc:
            raise errors.Refused(
                'Keystone makes no key pair for a server: '
                f'{type(exc).__name__}'
            ) from exc
        pair = made.access, made.secret
        # If two engines do so at once, both pairs work, and one is kept.
        resources.keep_secret(
            stack.context, each.number, _OURS, json.dumps(pair)
        )
        return pair
    raise errors.Refused(
        f'Server {server.id} cannot send the results of runs without an '
        'object store, as Heat has made no user for it: set its '
        'software_config_transport to POLL_SERVER_CFN'
    )


class RunServers:
    """The servers of the runs that one process leads; safe for threads.

    :param settle: called with what servers have answered.
    """

    def __init__(self, settle: Settle) -> None:
        self.stacks: process.Shared[tuple[str, str], StackRuns] = (
            process.Shared(
                lambda key: StackRuns(*key, settle),
                lambda stack: stack.is_idle,
                _IDLE_STACKS,
            )
        )

    def of_stack(self, project_id: str, stack_id: str) -> StackRuns:
        """Return the servers of a root stack."""
        return self.stacks.get((project_id, stack_id))

    def room(self, project_id: str) -> float:
        """Return how many more deployments a project may have in Heat."""
        with deployment_rows.guarded(everything=True):
            return in_process.room(project_context(project_id))

    def prepare(
        self,
        project_id: str,
        run: run_records.RunRecord,
        members: abc.Sequence[int],
    ) -> dict[int, deliveries.Delivery | errors.Error]:
        """Return the deliveries of members, or the errors that prevent them.

        :param run: with the attempts that begin.
        :raises errors.Unavailable: the database does not answer.
        """
        order = run.order
        context = self._context(project_id, order.members[members[0]].stack_id)
        refused = refusals(context, order, members)
        find = finder(context, order, members)

        @functools.cache
        def known() -> abc.Mapping[str, heat_values.Server]:
            with stack_reading.translated('look up servers'):
                return resources.find_all(
                    context, {order.members[n].server_id for n in members}
                )

        # A store that does not answer is asked once.
        outages: dict[str, errors.Unavailable] = {}
        made: dict[int, deliveries.Delivery | errors.Error] = {}
        for n in members:
            stack_id = order.members[n].stack_id
            try:
                if n in refused:
                    raise errors.Refused(refused[n])
                if stack_id in outages:
                    raise outages[stack_id]
                target, row_id = find(n), str(uuid.uuid4())
                own_inputs = self.of_stack(project_id, stack_id).own_inputs(
                    run_store.key_of(run, n),
                    run.timeout(n),
                    stepping.log_limit(order),
                    order.members[n].server_id,
                    known,
                )
                made[n] = stepping.delivery(
                    run,
                    n,
                    deployment_id=row_id,
                    config_id=fleets.new_config_id(row_id),
                    draft=stepping.draft(run, n, target, own_inputs),
                )
            except errors.Unavailable as exc:
                outages[stack_id] = exc
                made[n] = exc
            except errors.Error as exc:
                made[n] = exc
        return made

    def given(
        self,
        project_id: str,
        run: run_records.RunRecord,
        members: abc.Collection[int],
    ) -> dict[int, deliveries.Delivery]:
        """Read the deliveries of members; those that are gone are left out."""
        row_ids = {n: str(run.attempts[n].row_id) for n in members}
        with deployment_rows.guarded(everything=True):
            found = rows.visible(project_context(project_id), row_ids.values())
        return {
            n: stepping.delivery(
                run,
                n,
                deployment_id=row.id,
                config_id=row.config.id,
                draft=row.config,
            )
            for n in members
            if (row := found.get(row_ids[n]))
        }

    def tell(
        self, project_id: str, stack_id: str, server_ids: abc.Collection[str]
    ) -> None:
        """Update the metadata of servers.

        :param stack_id: whose stored credentials serve.
        :raises errors.Unavailable: the database does not answer.
        """
        with deployment_rows.guarded(everything=True):
            server_metadata.tell(
                self._context(project_id, stack_id), server_ids
            )

    def gone(
        self,
        project_id: str,
        run: run_records.RunRecord,
        members: abc.Collection[int],
    ) -> dict[int, str]:
        """Return why targets can no longer run anything, by number.

        :raises errors.Unavailable: the database does not answer.
        """
        chosen = {n: run.order.members[n] for n in members}
        context = project_context(project_id)
        heat = stack_reading.OwnHeat(context)
        stacks = {
            stack_id: is_gone(heat, stack_id)
            for stack_id in {each.stack_id for each in chosen.values()}
        }
        is_own = run.order.config is not None
        there = (
            ()
            if is_own
            else existing(
                context, {each.deployment_id for each in chosen.values()}
            )
        )
        reasons = {}
        for n, member in chosen.items():
            if stacks[member.stack_id]:
                reasons[n] = f'Stack {member.stack_name} was deleted'
            elif not is_own and member.deployment_id not in there:
                reasons[n] = stepping.deployment_gone(member)
        return reasons

    def _context(self, project_id: str, stack_id: str) -> heat_types.Context:
        """Return a context with the credentials of a stack, if it has any."""
        try:
            return self.of_stack(project_id, stack_id).stack.context
        except errors.Denied:
            return project_context(project_id)


def project_context(project_id: str) -> heat_types.Context:
    """Return a context that reads the rows of a project, without secrets."""
    return heat_types.in_project(
        heat_context.get_admin_context(), project_id, is_admin=False
    )


def is_gone(heat: stack_reading.OwnHeat, stack_id: str) -> bool:
    """Say whether Heat has deleted a stack, or is about to."""
    try:
        return heat.stack(stack_id).gone
    except errors.NotFound:
        return True


# Targets by deployment, or why one does not take its action now.
_Derived: TypeAlias = abc.Mapping[str, targets.Target | errors.Error]


def existing(
    context: heat_types.Context, deployment_ids: abc.Collection[str]
) -> abc.Collection[str]:
    """Return those of some deployments that exist.

    When an action times out, Heat deletes the row of its deployment, and makes
    it again for the next action. Meanwhile it exists if its resource does.

    :raises errors.Unavailable: the database does not answer; here as below.
    """
    with stack_reading.translated('look up deployments'):
        known = rows.servers_of(context, deployment_ids)
        others = set(deployment_ids).difference(known)
        found = resources.find_all(context, others)
    return {
        *known,
        *(
            each
            for each, stand in found.items()
            if not all(place.is_deleting for place in stand.resources)
        ),
    }


def finder(
    context: heat_types.Context,
    order: run_records.RunOrder,
    members: abc.Sequence[int],
) -> abc.Callable[[int], targets.Target]:
    """Return a function that finds members; it may raise `errors.Error`."""
    heat = stack_reading.OwnHeat(context)
    chosen = [order.members[n] for n in members]
    given: abc.Mapping[str, heat_values.DeploymentRow] = {}
    derived: _Derived = {}
    if order.config is None:
        with stack_reading.translated('read deployments'):
            given = rows.visible(
                context, [each.deployment_id for each in chosen]
            )
        present = {k for k, row in given.items() if not row.is_withdrawn}
        lost = [e for e in chosen if e.deployment_id not in present]
        wanted = ordering.Start(
            run=order.id, action=order.action, inputs=order.inputs
        )
        derived = withdrawn(context, lost, wanted) if lost else {}

    @functools.cache
    def source(config_id: str | None) -> heat_values.Config | None:
        if config_id is None or order.config is not None:
            return None
        try:
            return heat.config(config_id)
        except errors.NotFound:
            return None

    def find(number: int) -> targets.Target:
        member = order.members[number]
        return stepping.target(
            order,
            member,
            given.get(member.deployment_id),
            derived.get(member.deployment_id),
            source(member.source_id),
        )

    return find


def withdrawn(
    context: heat_types.Context,
    members: abc.Sequence[run_records.RunTarget],
    wanted: ordering.Start,
) -> _Derived:
    """Return members with a withdrawn deployment as targets.

    One is left out if Heat no longer has its resource.
    """
    with stack_reading.translated('look up withdrawn deployments'):
        known = resources.find_all(
            context, {each.deployment_id for each in members}
        )
    load = functools.cache(
        lambda stack_id: parser.Stack.load(context, stack_id=stack_id)
    )
    return {
        each.deployment_id: derived
        for each in members
        if (derived := _derived(each, known[each.deployment_id], load, wanted))
    }


def refusals(
    context: heat_types.Context,
    order: run_records.RunOrder,
    members: abc.Collection[int],
) -> dict[int, str]:
    """Return why members get no run, by their number.

    An engine acts with the credentials of a stack. What a user may do Heat's
    API decides.
    """
    chosen = {n: order.members[n] for n in members}
    with stack_reading.translated('look up the targets of a run'):
        known = resources.find_all(
            context, {each.server_id for each in chosen.values()}
        )
        given = rows.servers_of(
            context, [each.deployment_id for each in chosen.values()]
        )
    return {
        n: why
        for n, each in chosen.items()
        if (why := _refusal(order, each, known, given))
    }


def _refusal(
    order: run_records.RunOrder,
    member: run_records.RunTarget,
    known: abc.Mapping[str, heat_values.Server],
    given: abc.Mapping[str, str],
) -> str | None:
    """Return why a member gets no run now; None if it does.

    :param known: the servers, by ID.
    :param given: the IDs of the servers of deployments.
    """
    server = known[member.server_id]
    roots = {each.root_stack_id for each in server.resources}
    if order.config is not None and member.stack_id not in roots:
        return (
            f'Server {server.id} is not a server of stack {member.stack_name}'
        )
    # A deployment that is gone is noticed when it is read.
    if given.get(member.deployment_id, server.id) != server.id:
        return (
            f'Deployment {member.deployment_id} is no longer for server '
            f'{server.id}'
        )
    if server.resources and all(each.is_deleting for each in server.resources):
        return f'Server {server.id} is being deleted'
    return servers.refusal(server, member.stack_id)


def _derived(
    member: run_records.RunTarget,
    known: heat_values.Server,
    load: abc.Callable[[str], Any],
    wanted: ordering.Start,
) -> targets.Target | errors.Error | None:
    """Return a withdrawn deployment, or why it does not take an action now."""
    try:
        with stack_reading.translated(f'read resource {member.resource}'):
            for place in known.resources:
                # Other stacks may have resources of that ID as well.
                if place.is_deleting or place.root_stack_id != member.stack_id:
                    continue
                resource = load(place.stack_id).get(place.name)
                if not hasattr(resource, 'run_target'):
                    continue
                if resource.status == resource.IN_PROGRESS:
                    raise errors.Unavailable(
                        f'{resource.name} is {resource.action}_IN_PROGRESS'
                    )
                target: targets.Target = resource.run_target(wanted)
                if (target.deployment_id, target.server_id) == (
                    member.deployment_id,
                    member.server_id,
                ):
                    return target
    except errors.Error as exc:
        return exc
    return None
