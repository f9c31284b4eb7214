# SPDX-License-Identifier: Apache-2.0
"""What becomes of runs whose stack or deployment goes.

With the container go their records, and with those all knowledge of what was
made for them in Heat. So that goes first.

A run may be on its way to the server just then, by somebody who may not even
be allowed any more to undo it: with a stack go its trusts. Its announcement
is revoked, and its record read once more. Who starts it does the two the
other way round, writes the record and then looks at the announcement; so at
least one of them sees the other. The announcement stays in the listing: if we
fail or die in there, who takes our place finds the run by it.
"""

from collections import abc
import contextlib

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins.runs import orchestration
from heat_plugins.runs import run as runs
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
    """Take runs from their servers.

    Their records are left alone: whoever waits sees that they are gone with
    the container, or that their deployment is. One that cannot be read, and
    so cannot be settled by anybody, is deleted.

    One that cannot be taken back is logged and keeps none of the others.

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
    """Take a run from its server; False if there was none so far."""
    try:
        run = found.read(key)
        if run is None or run.state is runs.State.STARTING:
            found.revoke(key)
            run = found.read(key)
    except errors.Unreadable:
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
            'Run %(run)s goes with its stack or deployment, and could '
            'not be taken back from its server: %(error)s',
            {'run': key.run_id, 'error': exc},
            exc_info=not isinstance(exc, errors.Error),
        )
        return False
    return True
