# SPDX-License-Identifier: Apache-2.0
"""Following the runs that an engine has started, to their ends.

The sender of a signal gets no answer and need not poll for its run, and a run
that has ended must be removed from its server's metadata. So the engine polls,
with one thread for each root stack that has unfinished runs, and seldom, as
nothing waits for it. An attribute or a command that reads the runs meanwhile
finds the same. When the engine ends, so does the thread; the next command or
engine that reads the runs settles them.
"""

import threading

from heat_plugins import foreign
from heat_plugins.runs import runs
from heat_plugins.runs.follow import waiting
from heat_plugins.runs.records import ledgers

LOG = foreign.logger(__name__)

#: No caller waits for what it finds.
PACE = waiting.Pace(fast=4.0, first=4.0, most=30.0, nap=30.0)

# The root stacks whose runs are followed, and the ledger of the last that has
# started since their thread has looked for one. The stack may have been given
# other credentials by then, and the old ones been taken away.
_followed: dict[str, ledgers.Ledger | None] = {}
_lock = threading.Lock()


def follow(ledger: ledgers.Ledger, root_stack_id: str) -> None:
    """See the runs of a root stack to their ends, in a thread.

    :param ledger: it is used by that thread alone.
    """
    with _lock:
        is_new = root_stack_id not in _followed
        _followed[root_stack_id] = ledger
    if is_new:
        threading.Thread(
            target=watch,
            args=(root_stack_id,),
            name=f'runs of {root_stack_id}',
            daemon=True,
        ).start()


def watch(root_stack_id: str) -> None:
    """See runs to their ends, also those that begin meanwhile."""
    while ledger := _next(root_stack_id):
        try:
            _see_to_the_end(ledger, root_stack_id)
        except Exception as exc:
            LOG.warning(
                'Cannot follow the runs of stack %(stack)s; the next command '
                'or run settles them: %(error)s: %(message)s',
                {
                    'stack': root_stack_id,
                    'error': type(exc).__name__,
                    'message': exc,
                },
            )


def _see_to_the_end(ledger: ledgers.Ledger, root_stack_id: str) -> None:
    waiter = ledger.waiter(
        root_stack_id, watch=_tell_end, pace=PACE, everything=True
    )
    waiter.step()
    while waiter.pending:
        waiter.step()


def _tell_end(run: runs.Run) -> None:
    """Log that a run has ended; its reason may be in a server's words."""
    if run.ended:
        LOG.info(
            'Run %(run)s of %(action)s on %(resource)s of stack %(stack)s, '
            '%(stack_id)s, has ended: %(state)s',
            {
                'run': run.id,
                'action': run.action,
                'resource': run.resource,
                'stack': run.stack_name,
                'stack_id': run.stack_id,
                'state': run.state.value,
            },
        )


def _next(root_stack_id: str) -> ledgers.Ledger | None:
    """Return the ledger of what has started; None if there is nothing."""
    with _lock:
        ledger = _followed.pop(root_stack_id)
        if ledger is not None:
            _followed[root_stack_id] = None
    return ledger
