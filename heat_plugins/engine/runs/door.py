# SPDX-License-Identifier: Apache-2.0
"""The door: runs are ordered and shown through Heat's own API.

A POST of a software deployment for the server `ordering.SERVER` is an order,
and a GET of its deployments a query; see `ordering`. heat-api passes both on
as they are, so its tokens and its policy hold. What changes a run needs
`stacks:update` in Heat's policy, too. A list begins with the door itself, so
that a list of an engine without heat-plugins, which is empty, is told apart.

The door acts in the project of the caller's token, also for administrators.
"""

from collections import abc
import contextlib
import dataclasses
from importlib import metadata
import json
import threading
import time
from typing import Any
import uuid

from heat.common import context as heat_context
from heat.common import exception
from oslo_config import cfg

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins import heat_values
from heat_plugins import stored
from heat_plugins.clients import webhooks
from heat_plugins.configs import config_checking
from heat_plugins.engine import callers
from heat_plugins.engine import heat_types
from heat_plugins.engine import transports
from heat_plugins.engine.database import run_tables
from heat_plugins.engine.database import stack_reading
from heat_plugins.engine.database import tenancy
from heat_plugins.runs import deciding
from heat_plugins.runs import notifying
from heat_plugins.runs import ordering
from heat_plugins.runs import overview
from heat_plugins.runs import run_records
from heat_plugins.runs import run_store
from heat_plugins.runs import summary
from heat_plugins.runs.targets import selecting
from heat_plugins.runs.targets import targets
from heat_plugins.signals import live

# The action of a script of one's own that names none.
_APPLY = 'APPLY'

# About the most bytes of an answer, and how often a request is decided again
# because another process has changed the run.
_PAGE, _TRIES = 4 * 2**20, 10

# With how many others a target is shown with what its server does, and the
# seconds for which an answer of the object store is worth waiting.
_EXPLAINED, _PATIENCE = 5, 3.0

# What a regular expression has, and a pattern of resources does not.
_REGULAR = frozenset('^$(){}|+\\')

_State = run_records.State

_Function = abc.Callable[..., Any]
_Answer = dict[str, Any]


class Door:
    """Takes orders, and shows runs.

    :param wake: called with the ID of a run that was stored or changed.
    :param progress: returns what the server of a target reports.
    """

    def __init__(
        self,
        store: run_store.RunStore,
        wake: abc.Callable[[str], None] = lambda run_id: None,
        clock: abc.Callable[[], float] = time.time,
        *,
        progress: abc.Callable[
            [str, run_records.RunRecord, int], tuple[float | None, str | None]
        ] = lambda project_id, run, number: (None, None),
    ) -> None:
        self._store = store
        self._wake = wake
        self._read_progress = progress
        self._clock = clock
        self._release = metadata.version('heat-plugins')

    def take(
        self, context: heat_types.Context, order: object, engine_id: str
    ) -> _Answer:
        """Follow an order; return the run, or the targets of a dry run.

        :raises errors.Error: nothing was changed, except that after
            `errors.Unavailable` it may have been.
        """
        wanted = ordering.read(order)
        if isinstance(wanted, ordering.Start):
            return self._start(context, wanted, engine_id)
        callers.enforce(context, context.project_id)
        try:
            if isinstance(wanted, ordering.Ask):
                return self.follow(
                    context.project_id, _who(context), wanted, engine_id
                )
            self._store.delete(context.project_id, wanted.run)
        except errors.NotFound as exc:
            raise errors.NotFound(wanted.run) from exc
        return _answer(wanted.run, '', 'deleted', {})

    def show(self, context: heat_types.Context, query: str) -> list[_Answer]:
        """Return the door, and the runs or targets that are asked for."""
        wanted = ordering.read_query(query)
        if wanted.actions_of is not None:
            return self._actions(context, wanted.actions_of, wanted)
        if wanted.run is None:
            return self._list(context.project_id, wanted)
        try:
            return self._targets(context.project_id, wanted.run, wanted)
        except errors.NotFound as exc:
            raise errors.NotFound(wanted.run) from exc

    # Orders

    def _start(
        self, context: heat_types.Context, wanted: ordering.Start, leader: str
    ) -> _Answer:
        """Store the run that a user orders, or only select its targets."""
        config = _config(context, wanted)
        limits = run_records.RunLimits.asked(wanted.limits)
        least, most = 2 * live.SLOT, (live.MOST - 1) * live.SLOT
        limit = wanted.log_limit
        if limit is not None and not least <= limit <= most:
            raise errors.Invalid(f'"log_limit" must be from {least} to {most}')
        notice = _notice(wanted.notify)
        if not wanted.action and config is None:
            raise errors.Invalid(
                'The order names neither an action nor a script'
            )
        action = wanted.action or _APPLY
        order = run_records.RunOrder(
            id=wanted.run,
            action=action,
            limits=limits,
            members=(),
            created_at=int(self._clock()),
            created_by=run_store.by(_who(context), wanted.by),
            targets=wanted.shown(),
            inputs=dict(wanted.inputs),
            config=None if config is None else dataclasses.asdict(config),
            log_limit=wanted.log_limit,
            notify=notice.to if notice else '',
            webhook=stored.dump(notice) if notice else None,
        )
        if not wanted.dry_run:
            callers.enforce(context, context.project_id)
            with contextlib.suppress(errors.NotFound):
                known = self._store.load(order.id, context.project_id)
                if not run_store.is_same_order(known.run.order, order):
                    raise errors.Exists(f'run {order.id}, of another order')
                return self._shown(known)
        _check_ways(context, wanted)
        chosen = choose(
            stack_reading.ProjectStacks(context), wanted, action, config
        )
        number = len(chosen.targets)
        free = wanted.confirm_above
        if wanted.dry_run or (free is not None and number > free):
            return _answer(wanted.run, action, ordering.DRY_RUN, _dry(chosen))
        if wanted.expected not in (None, number):
            raise errors.Refused(
                f'Nothing was started: {wanted.expected} targets were '
                f'confirmed, and {number} are selected now. List them with a '
                'dry run, and confirm again'
            )
        made = self._store.create(
            context.project_id, new_run(order, chosen.targets), leader
        )
        self._wake(wanted.run)
        return self._shown(made)

    def follow(
        self,
        project_id: str,
        who: str,
        wanted: ordering.Ask,
        engine_id: str | None = None,
    ) -> _Answer:
        """Let a run follow a request, and store that as a step of it.

        :param engine_id: the engine that leads a run which had ended, so that
            it continues at once; None: the one that has led it.

        :raises errors.NotFound: the project has no such run.
        :raises errors.Refused: it makes no sense now.
        """
        for _try in range(_TRIES):
            before = self._store.load(wanted.run, project_id)
            run = before.run
            if any(e.request == wanted.request for e in run.control.asked):
                return self._shown(before)
            request = wanted.of(run, who)
            refusal = deciding.refusal(run, request.do, only=request.only)
            if before.unreadable and wanted.do != deciding.CANCEL:
                refusal = f'{before.unreadable}; it can only be cancelled'
            if refusal:
                raise errors.Refused(
                    f'Cannot {wanted.do} run {run.id}: {refusal}'
                )
            now = self._clock()
            after = deciding.follow(run, request, now)
            decided = deciding.advance(after, now).run
            if not decided.ended or not any(e.number for e in run.attempts):
                # Its leader alone starts runs, and ends what has started: it
                # clears up after that.
                after = dataclasses.replace(decided, attempts=after.attempts)
            try:
                made = self._store.step(
                    before,
                    after,
                    str(uuid.uuid4()),
                    engine_id=engine_id if run.ended else None,
                )
            except run_store.Stale:
                continue
            self._wake(run.id)
            return self._shown(made)
        raise errors.Unavailable(
            f'Run {wanted.run} changes too fast; repeat the request'
        )

    # Queries

    def _actions(
        self, context: heat_types.Context, stack: str, wanted: ordering.Query
    ) -> list[_Answer]:
        """Return the actions that the deployments of a stack offer."""
        chooser = selecting.Chooser(stack_reading.ProjectStacks(context))
        resources = () if wanted.resource is None else (wanted.resource,)
        try:
            found = chooser.deployments(
                ordering.Wanted(stacks=(stack,), resources=resources)
            )
        except errors.NotFound as exc:
            raise errors.Refused(str(exc)) from exc
        rest = found[wanted.first :]
        page = _page(
            _answer(each.deployment_id, '', 'ACTIONS', each.offer())
            for each in rest
        )
        following = wanted.first + len(page)
        return [
            self._door(None if len(page) == len(rest) else following),
            *page,
        ]

    def _list(self, project_id: str, wanted: ordering.Query) -> list[_Answer]:
        """Return a page of the project's runs, the newest first."""
        states = [each.value for each in run_records.Phase]
        if unknown := {*wanted.state} - {*states}:
            raise errors.Invalid(
                f'"state" must be one of {", ".join(states)}, not '
                + bounds.listed(map(bounds.shortened, sorted(unknown)))
            )
        limit = max(1, min(wanted.limit, run_store.PAGE))
        wanted = dataclasses.replace(wanted, limit=limit)
        try:
            heads = self._store.heads(project_id, wanted)
        except errors.NotFound as exc:
            raise errors.Refused(
                'The last run of the page before was deleted; list again'
            ) from exc
        page = _page(self._listed(project_id, head, wanted) for head in heads)
        is_last = len(page) == len(heads) < limit
        return [self._door(None if is_last else page[-1]['id']), *page]

    def _listed(
        self, project_id: str, head: run_records.Head, wanted: ordering.Query
    ) -> _Answer:
        """Return a run as a list shows it, with its targets if asked for."""
        values = overview.of_head(head)
        if wanted.targets:
            values['target_list'] = []
            # Else it was deleted since.
            with contextlib.suppress(errors.NotFound):
                run = self._store.load(head.id, project_id).run
                values['target_list'] = found = [
                    _target(run, number, outputs=False)['output_values']
                    for number, each in enumerate(run.order.members)
                    if wanted.stack in (None, each.stack_id, each.stack_name)
                ]
                waiting = [e for e in found if e['state'] == _State.WAITING]
                for each in waiting if len(waiting) <= _EXPLAINED else ():
                    self._add_busy(project_id, run, each)
        state = head.state.value if head.state else overview.UNREADABLE
        return _answer(head.id, head.action, state, values)

    def _targets(
        self, project_id: str, run_id: str, wanted: ordering.Query
    ) -> list[_Answer]:
        """Return a run, and a page of its targets."""
        if wanted.newer_than is not None and not self._store.heads(
            project_id,
            ordering.Query(run=run_id, newer_than=wanted.newer_than),
        ):
            # It must be there all the same.
            if not self._store.heads(project_id, ordering.Query(run=run_id)):
                raise errors.NotFound(run_id)
            return [self._door(None)]
        found = self._store.load(run_id, project_id)
        run = found.run
        if wanted.attempt is not None:
            run = run.at_attempt(wanted.attempt)
        chosen = [
            n
            for n in range(wanted.first, len(run.attempts))
            if (wanted.attempt is None or run.attempts[n].is_run)
            and (not wanted.state or overview.state(run, n) in wanted.state)
        ]
        page = _page(
            _target(run, n, wanted.outputs) for n in chosen[: wanted.limit]
        )
        if len(page) <= _EXPLAINED:
            for values in (each['output_values'] for each in page):
                if values['state'] == _State.WAITING:
                    self._add_busy(project_id, run, values)
                if values['state'] == _State.RUNNING:
                    values['progress'], values['message'] = self._progress(
                        project_id, run, values['number']
                    )
        following = next(iter(chosen[len(page) :]), None)
        return [self._door(following), self._shown(found), *page]

    def _add_busy(
        self, project_id: str, run: run_records.RunRecord, values: _Answer
    ) -> None:
        """Add which other run keeps the server of a target busy."""
        others = self._store.on_server(project_id, values['server'])
        busy = overview.kept_busy(
            run, values['number'], (e for e in others if e.id != run.id)
        )
        values['reason'] = '. '.join(filter(None, [values['reason'], busy]))

    def _progress(
        self, project_id: str, run: run_records.RunRecord, number: int
    ) -> tuple[float | None, str | None]:
        """Return the progress of a server; nothing if the store is slow."""
        found: list[tuple[float | None, str | None]] = []

        def read() -> None:
            with contextlib.suppress(Exception):
                found.append(self._read_progress(project_id, run, number))

        thread = threading.Thread(target=read, daemon=True)
        thread.start()
        thread.join(_PATIENCE)
        return found[0] if found else (None, None)

    def _door(self, following: str | int | None) -> _Answer:
        """Return the first element of each list.

        :param following: where the next page begins; None for no more.
        """
        return _answer(
            ordering.SERVER,
            'DOOR',
            'COMPLETE',
            {
                'release': self._release,
                'revision': run_tables.revision(),
                'time': summary.time(int(self._clock())),
                'next': following,
            },
        )

    def _shown(self, found: run_store.StoredRun) -> _Answer:
        """Return a run as Heat's API shows a deployment."""
        run = found.run
        values = overview.of(run, self._clock())
        # They are among the targets.
        del values['failures']
        if found.unreadable:
            values['reason'] = found.unreadable
        return _answer(
            run.id,
            run.order.action,
            run.control.phase.value,
            {**values, 'version': found.version},
        )


_installed: list[Door] = []


def install(door: Door | None) -> None:
    """Let heat-engine take orders in this process; None ends that."""
    _installed[:] = [door] if door else []


# What replaces functions of Heat's; see `engine.patches`


def ordered(create: _Function) -> _Function:
    """Let a deployment for the door's server be an order.

    Heat counts deployments before it reads one, so this comes first: a
    project at its limit can still cancel. What `tenancy.naming_own_project`
    does, it does, too.
    """
    checked = tenancy.naming_own_project(create)

    def take(
        service: Any,
        cnxt: heat_types.Context,
        server_id: str,
        config_id: str | None,
        input_values: Any,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        if server_id != ordering.SERVER or not _installed:
            return checked(
                service,
                cnxt,
                server_id,
                config_id,
                input_values,
                *args,
                **kwargs,
            )
        with _as_by_heat():
            return _installed[0].take(
                _own(cnxt), input_values, service.engine_id
            )

    taken: _Function = heat_context.request_context(take)
    return taken


def listed(list_all: _Function) -> _Function:
    """Let the deployments of the door's server be runs."""

    def show(service: Any, cnxt: heat_types.Context, server_id: object) -> Any:
        name, _, query = str(server_id).partition('?')
        if name != ordering.SERVER or not _installed:
            return list_all(service, cnxt, server_id)
        with _as_by_heat():
            return _installed[0].show(_own(cnxt), query)

    shown: _Function = heat_context.request_context(show)
    return shown


@contextlib.contextmanager
def _as_by_heat() -> abc.Iterator[None]:
    """Raise the errors of Heat that its API answers as they are.

    Of those with any text, heat-api answers some with 400 alone.
    """
    try:
        yield
    except errors.Exists as exc:
        raise exception.StackExists(stack_name=str(exc)) from exc
    except errors.NotFound as exc:
        raise exception.EntityNotFound(entity='Run', name=str(exc)) from exc
    except errors.Unavailable as exc:
        # 500, which clients retry.
        raise exception.Error(str(exc)) from exc
    except errors.Error as exc:
        # It may quote what was ordered.
        message = bounds.shortened(str(exc), bounds.TEXT)
        raise exception.InvalidSchemaError(message=message) from exc


def _own(context: heat_types.Context) -> heat_types.Context:
    """Return a context that reads the caller's project alone."""
    if not context.is_admin:
        return context
    return heat_types.in_project(context, context.project_id, is_admin=False)


def _who(context: heat_types.Context) -> str:
    """Return the user who asks, for people."""
    return str(context.username or context.user_id or 'unknown')


# Reading orders


def choose(
    stacks: stack_reading.ProjectStacks,
    wanted: ordering.Start,
    action: str,
    config: heat_values.Config | None = None,
) -> selecting.Chosen:
    """Select the targets of an order.

    :raises errors.Refused: there are none, or too many. It is no
        `errors.NotFound`, with which an engine without a door answers.
    """
    try:
        return selecting.Chooser(stacks).choose(
            dataclasses.replace(wanted, action=action), config
        )
    except errors.NotFound as exc:
        hints = [
            f'. {bounds.shortened(each)} looks like a regular expression; a '
            'pattern has *, ? and […]'
            for each in wanted.resources
            if not _REGULAR.isdisjoint(each)
        ]
        raise errors.Refused(''.join([str(exc), *hints[:1]])) from exc


def new_run(
    order: run_records.RunOrder, selected: abc.Iterable[targets.Target]
) -> run_records.RunRecord:
    """Return the run of an order on the targets that are selected."""
    hooks = cfg.CONF.heat_plugins.known_hooks
    members = tuple(each.with_action(order.action, hooks) for each in selected)
    return run_records.RunRecord.new(
        dataclasses.replace(order, members=members)
    )


def _config(
    context: heat_types.Context, wanted: ordering.Start
) -> heat_values.Config | None:
    """Read a script of the user's own, as Heat would take it.

    :raises errors.Refused: it is none, or Heat has no such config.
    """
    values = wanted.config
    if wanted.config_id is not None:
        if values is not None:
            raise errors.Invalid('The order has both "config" and "config_id"')
        try:
            return stack_reading.ProjectStacks(context).config(
                wanted.config_id
            )
        except errors.NotFound as exc:
            # With that an engine without a door answers.
            raise errors.Refused(str(exc)) from exc
    if values is None:
        return None
    given = {'config': '', 'group': 'script', 'outputs': [], **values}
    try:
        config = stored.read(heat_values.Config, {**given, 'id': ''})
        for section in (config.inputs, config.outputs):
            for each in section:
                if not isinstance(each.get('name'), str):
                    raise ValueError('an input or output has no name')
    except ValueError as exc:
        raise errors.Invalid(f'"config" of the order: {exc}') from exc
    found = config_checking.check(
        group=config.group,
        config=config.config,
        inputs=config.inputs,
        outputs=config.outputs,
        known_hooks=cfg.CONF.heat_plugins.known_hooks,
    )
    if found.errors:
        raise errors.Invalid(
            '"config" of the order: '
            + bounds.listed(found.errors, between='; ')
        )
    return config


def _check_ways(context: heat_types.Context, wanted: ordering.Start) -> None:
    """Check that servers can send results and live output.

    :raises errors.Refused: they cannot.
    """
    if refusal := transports.refusal_of_runs(context.clients):
        raise errors.Refused(refusal)
    lacking = transports.lacks(context.clients, heat_values.TEMP_URL_POLL)
    if wanted.log_limit is not None and lacking:
        raise errors.Refused(
            f'"log_limit" is for live output, which needs an object store: '
            f'leave it out. {lacking}'
        )


def _notice(
    values: abc.Mapping[str, Any] | None,
) -> notifying.NoticeOrder | None:
    """Read whom to tell of the end.

    :raises errors.Refused: it is invalid, or the operator forbids that host.
    """
    if values is None:
        return None
    webhook = webhooks.Webhook.parse(str(values.get('url', '')))
    webhooks.Hosts(cfg.CONF.heat_plugins.notify_hosts).check(webhook)
    return notifying.NoticeOrder.asked(values, webhook.shown)


# Answers


def _answer(
    thing_id: str, action: str, status: str, values: _Answer
) -> _Answer:
    """Return a run or target in the form of a deployment of Heat's API."""
    return {
        'id': thing_id,
        'server_id': ordering.SERVER,
        'config_id': '',
        'action': action,
        'status': status,
        'status_reason': values.get('reason', ''),
        'input_values': {},
        'output_values': values,
    }


def _target(run: run_records.RunRecord, number: int, outputs: bool) -> _Answer:
    """Return a run's target as Heat's API shows a deployment."""
    values = {'number': number, **overview.target(run, number)}
    if not outputs:
        del values['outputs']
    answer = _answer(
        f'{run.id}.{number}', run.order.action, values['state'], values
    )
    return {**answer, 'server_id': values['server']}


def _page(answers: abc.Iterable[_Answer]) -> list[_Answer]:
    """Return the first answers, about `_PAGE` bytes; one of any size."""
    page: list[_Answer] = []
    size = 0
    for each in answers:
        size += len(json.dumps(each))
        if page and size > _PAGE:
            break
        page.append(each)
    return page


def _dry(chosen: selecting.Chosen) -> _Answer:
    """Return the targets and those left out with reasons, up to a page."""
    rows = chosen.rows()
    page = _page(rows)
    return {
        'targets': len(chosen.targets),
        'left_out': len(chosen.left_out),
        'unmet': list(chosen.unmet),
        'rows': page,
        'more': len(rows) - len(page),
    }
