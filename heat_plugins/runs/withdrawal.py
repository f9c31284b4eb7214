# SPDX-License-Identifier: Apache-2.0
"""Withdraw runs from their servers.

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

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins import heat_values
from heat_plugins import tokens
from heat_plugins.runs import orchestration
from heat_plugins.runs import run_objects
from heat_plugins.runs import runs
from heat_plugins.runs.fleet.records import layout
from heat_plugins.runs.records import record_names
from heat_plugins.runs.records import records

LOG = foreign.logger(__name__)

# By how many seconds Heat's clock may be behind, and how many configs of one
# action to read.
_CLOCKS, _LOOKS = 60.0, 32


def withdraw(
    heat: orchestration.Deploying, run: runs.Run, *, is_proved: bool = False
) -> None:
    """Take a run from its server, and delete what was made in Heat.

    A user who may only write into the container of a stack may have written
    the record. So nothing goes but what Heat shows to be of the run.

    :param is_proved: whether the record is proved, as that of an operation is.
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


def delete_undelivered(
    heat: orchestration.Deploying,
    lost: abc.Sequence[runs.Run],
    known: abc.Container[str | None] = (),
) -> None:
    """Delete the configs of runs whose starter died before delivering them.

    No record names those. Those are looked at that were made first since the
    runs were announced, and only as many as a starter's death is worth.

    :param lost: runs of one action, for which Heat has no deployment.
    :param known: IDs of configs that records name.
    """
    try:
        if lost:
            _delete_own(heat, lost, known)
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
) -> None:
    since = min(run.started_at for run in lost) - _CLOCKS
    recent = heat.recent_configs(f'-{lost[0].action}', since)
    unknown = [each for each in recent if each not in known]
    for config_id in unknown[-_LOOKS:]:
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
    return _succeeds(key, lambda: withdraw(heat, run))


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
