# SPDX-License-Identifier: Apache-2.0
"""What becomes of runs whose stack or deployment goes.

With the container go their records, and with those all knowledge of what was
made for them in Heat. So that goes first.

A run may be on its way to the server just then, by somebody who may not even
be allowed any more to undo it: with a stack go its trusts. Its announcement
is taken away, and its record read once more. Who starts it does the two the
other way round, writes the record and then looks for the announcement; so at
least one of them sees the other.
"""

import contextlib

from heat_plugins.runs import names
from heat_plugins.runs import orchestration
from heat_plugins.runs import records
from heat_plugins.runs import run as runs
from heat_plugins.runs import starting
from heat_plugins.signals import errors as store_errors


def withdraw(
    heat: orchestration.Deploying,
    found: records.Records,
    prefix: str = names.OPEN,
) -> list[str]:
    """Take runs from their servers.

    Their records are left alone: whoever waits sees that they are gone with
    the container, or that their deployment is.

    :param prefix: which; by default all of the container.
    :returns: the ids of those that had not ended.
    """
    withdrawn = []
    with contextlib.suppress(store_errors.NotFound):
        for key in found.opened(prefix):
            run = found.read(key)
            if run is None or run.state is runs.State.STARTING:
                found.close(key)
                run = found.read(key)
            if run is not None:
                starting.withdraw(heat, run)
                withdrawn.append(run.id)
    return withdrawn
