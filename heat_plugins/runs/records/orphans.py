# SPDX-License-Identifier: Apache-2.0
"""Withdraw the runs of a stack or deployment that is deleted.

The container holds their records, and with those all knowledge of what was
created for them in Heat. So that is deleted before the container.

Another process may be delivering a run just then, and may no longer be
permitted to undo it: with a stack go its trusts. So this revokes the
announcement of the run, and reads its record once more. The process that
starts it does the two the other way round: it writes the record and then reads
the announcement; so at least one of them sees the other. The announcement
stays in the listing: if this fails or dies, the next attempt finds the run by
it.
"""

from collections import abc
import contextlib

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins.runs import orchestration
from heat_plugins.runs import runs
from heat_plugins.runs.records import record_names
from heat_plugins.runs.records import records
from heat_plugins.runs.records import unreadable
from heat_plugins.runs.start import starting

LOG = foreign.logger(__name__)


def withdraw(
    heat: orchestration.Deploying,
    found: records.Records,
    prefix: str = record_names.OPEN,
    server: abc.Callable[[], str | None] = lambda: None,
) -> list[str]:
    """Withdraw runs from their servers.

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
        for key in found.opened(prefix):
            # What the store answers ends this: the container may be kept
            # until that has passed.
            if _withdraw(heat, found, key, server):
                withdrawn.append(key.run_id)
    return withdrawn


def _withdraw(
    heat: orchestration.Deploying,
    found: records.Records,
    key: record_names.Key,
    server: abc.Callable[[], str | None],
) -> bool:
    """Withdraw a run from its server; False if that has none yet."""
    try:
        run = found.read(key)
        if run is None or run.state is runs.State.STARTING:
            found.revoke(key)
            run = found.read(key)
    except errors.UnreadableRun:
        withdrawn = _heat_does(
            key, lambda: starting.withdraw_marked(heat, key, server())
        )
        if withdrawn:
            unreadable.forget(found, key)
        return withdrawn
    if run is None:
        found.close(key)
        return False
    return _heat_does(key, lambda: starting.withdraw(heat, run))


def _heat_does(
    key: record_names.Key, withdraw: abc.Callable[[], None]
) -> bool:
    """Say whether a run was taken from its server; log why it was not."""
    try:
        withdraw()
    except Exception as exc:
        LOG.warning(
            'Cannot withdraw run %(run)s of a deleted stack or deployment '
            'from its server: %(error)s',
            {'run': key.run_id, 'error': exc},
            exc_info=not isinstance(exc, errors.Error),
        )
        return False
    return True
