# SPDX-License-Identifier: Apache-2.0
"""Stacks of deployments, and the servers that answer them."""

from concurrent import futures
import contextlib
import itertools
import json
import time

from tests.bench import engine_state
from tests.bench import scenarios
from tests.functional import base

#: How many servers signal in the same instant.
_SENDERS = 16

#: Seconds for the stacks to be complete, once all deployments are. Heat's
#: longest pause between two tries to complete a stack is one minute.
_PATIENCE = 120

#: What a server sends that has succeeded.
BODY = json.dumps(
    {
        'deploy_stdout': 'one line of what a script prints\n' * 10,
        'deploy_stderr': '',
        'deploy_status_code': 0,
        'result': 'done',
    }
).encode()

_numbers = itertools.count(1)


def answer_runs(state, action):
    """Answer for all servers that have a run of an action."""
    for url in state.signal_urls(state.triggered(action)).values():
        base.put(url, BODY)


def end_runs(state, action):
    """Answer for all servers; return the seconds until no run is left."""
    answer_runs(state, action)
    begun = time.time()
    engine_state.until(lambda: not state.has_runs(), 600, 'the end of runs')
    return time.time() - begun


class Stacks:
    """Some stacks with a number of deployments in all.

    Whatever does not come about within a limit raises
    `engine_state.TooLongError`.
    """

    def __init__(self, lab, state, templates, count):
        self._lab = lab
        self._state = state
        self._session = lab.cloud.session()
        self._templates = templates
        self._count = count
        self._limit = 60 + 2 * count
        self._stacks = []

    @property
    def names(self):
        return [stack.name for stack in self._stacks]

    @property
    def _ids(self):
        return [stack.id for stack in self._stacks]

    def create(self, tags=''):
        """Create them; wait until all deployments wait for their servers."""
        for template in self._templates:
            stack = base.Stack(
                self._session,
                template,
                name=f'bench{next(_numbers)}',
                timeout_mins=60,
                tags=tags,
            )
            self._stacks.append(stack)
        self._all_wait('CREATE')

    def update(self):
        """Update them, with other inputs; wait as `create` does."""
        for stack, template in zip(self._stacks, self._templates, strict=True):
            stack.update(template, timeout_mins=60, turn='second')
        self._all_wait('UPDATE')

    def until_told(self, action, since):
        """Wait until the servers can read what they must run.

        The object that is a server's metadata is PUT after the rows are
        written.

        :param since: when the delivery began, as `time.time` gives it.
        """
        count, written = self._state.deliveries(self.waiting(action))
        path = f'.*/{scenarios.CONTAINER}/[0-9]+'

        def told():
            puts = [
                one
                for one in self._lab.cloud.swift_requests(since, 'PUT', path)
                if one['status'] < 300
            ]
            last = max((one['time'] for one in puts), default=0.0)
            return len({one['path'] for one in puts}) >= count and (
                last >= written
            )

        engine_state.until(
            told, self._limit, f'metadata of {count} servers ({action})'
        )

    def delete(self):
        """Delete them, and wait until they are gone."""
        for stack in self._stacks:
            stack.delete()
        engine_state.until(
            lambda: self._state.stacks(self._ids) == {'DELETE_COMPLETE'},
            self._limit,
            'deletion',
        )

    def waiting(self, action):
        """Return the ids of the deployments that wait for an action."""
        return self._state.deployments(self._ids, action)[0]

    def signal(self, action):
        """Answer in the servers' place; wait until the stacks are complete.

        Return the ``latencies``, seconds from a PUT to a complete resource,
        sorted; the ``seconds`` from the first PUT until the stacks were
        complete, None if they were not two minutes after the last of their
        deployments; those of the ``last`` PUT and resource; and how many were
        complete ``early``, before they were signalled.
        """
        waiting = self.waiting(action)
        urls = self._state.signal_urls(waiting)
        sent = {}
        done = {}

        def put(deployment):
            sent[deployment] = time.time()
            # That of heat-api-cfn, or a TempURL.
            is_signed = 'Signature=' in urls[deployment]
            return (base.post if is_signed else base.put)(
                urls[deployment], BODY
            )

        def all_done():
            for one in self._state.deployments(self._ids, action)[1]:
                done.setdefault(one, time.time())
            return len(done) == self._count

        begun = time.time()
        with futures.ThreadPoolExecutor(_SENDERS) as pool:
            statuses = [pool.submit(put, one) for one in waiting]
            engine_state.until(
                lambda: all_done() or all(one.done() for one in statuses),
                self._limit,
                f'{len(waiting)} PUTs',
            )
        if refused := sum(one.result() >= 400 for one in statuses):
            raise engine_state.TooLongError(f'{refused} PUTs were refused')
        engine_state.until(all_done, self._limit, action)
        seconds = None
        with contextlib.suppress(engine_state.TooLongError):
            engine_state.until(
                lambda: (
                    self._state.stacks(self._ids) == {f'{action}_COMPLETE'}
                ),
                _PATIENCE,
                action,
            )
            seconds = time.time() - begun
        return {
            'latencies': sorted(
                round(done[one] - sent[one], 3) for one in waiting
            ),
            'seconds': seconds,
            'early': self._count - len(waiting),
            'last': max(done.values()) - max(sent.values()) if sent else None,
        }

    def _all_wait(self, action):
        """Wait until each deployment waits, or does so no more."""
        engine_state.until(
            lambda: (
                sum(map(len, self._state.deployments(self._ids, action)))
                == self._count
            ),
            self._limit,
            f'{self._count} deployments to wait ({action})',
        )
