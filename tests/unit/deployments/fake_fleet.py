# SPDX-License-Identifier: Apache-2.0
"""Servers, rows and signals in memory, for rollouts; strict, and may crash.

What the real one does in one transaction is one step here. A `Crash` comes
before or after any step: as if the engine had died there.
"""

import dataclasses
import json

from heat_plugins import errors
from heat_plugins import heat_values
from heat_plugins import tokens
from heat_plugins.deployments import deliveries
from heat_plugins.deployments import fleets
from heat_plugins.objectstore import keys
from heat_plugins.signals import body
from heat_plugins.signals import paces
from heat_plugins.signals import signal_names
from heat_plugins.signals import watcher

GROUP = signal_names.new_group_id()

ANSWERS_BY = {
    'TEMP_URL_POLL': deliveries.AnswersBy.OBJECT,
    'CFN_SIGNAL': deliveries.AnswersBy.ROW,
    'HEAT_SIGNAL': deliveries.AnswersBy.ROW,
    'ZAQAR_SIGNAL': deliveries.AnswersBy.QUEUE,
    'NO_SIGNAL': deliveries.AnswersBy.NONE,
}

OK = {body.STATUS_CODE: 0}
BAD = {body.STATUS_CODE: 1, body.STDERR: 'boom'}


class Crash(BaseException):
    """The engine has died."""


class Source:
    """What the watcher polls; see `watcher.SignalSource`."""

    def __init__(self, fleet):
        self._fleet = fleet

    def names(self, wanted):
        if not self._fleet.lists:
            return set()
        return {*self._fleet.signals, *self._fleet.reports()}

    def rows(self, ids):
        return {
            row.id: watcher.WatchedRow(
                config_id=row.config.id,
                in_progress=row.in_progress,
                begun=row.server_id in self._fleet.begun
                or tokens.STARTED.marks(row.reason),
            )
            for row in self._fleet.rows.values()
            if row.id in ids
        }


class Fleet:
    """See `deployments.fleets.Fleet`.

    :ivar crash_at: the step before which the engine dies.
    :ivar broken: what each step raises; None for none.
    :ivar answer: returns what a server sends, by the key of its member; None
        leaves it waiting.
    :ivar begun: the servers that have reported that they have started.
    :ivar noted: the deliveries that were noted to have started.
    :ivar lists: whether listings of the store show what it holds.
    :ivar lost: the servers that no longer exist.
    :ivar untold: the servers that still have what was withdrawn.
    :ivar ran: the actions that servers have run, with the config's id.
    """

    def __init__(self, clock):
        self.clock = clock
        self.rows, self.configs = {}, {}
        self.told, self.signals = {}, {}
        self.ran = []
        self.begun, self.noted = set(), []
        self.refusals, self.stopped = {}, []
        self.events, self.dead = [], set()
        self.lost, self.is_stack_cancelled = set(), False
        self.untold, self.breaks_as_it_tells = set(), False
        self.signer = keys.Signer(
            storage_url='http://swift/v1/AUTH_me',
            container='signals',
            kind=keys.ACCOUNT,
            key='first',
            digest='sha256',
        )
        self.broken = None
        self.crash_at = None
        self.steps = self.renewed = 0
        self.lists = True
        self.transport = 'TEMP_URL_POLL'
        self.who = 'world'
        self.answer = lambda key: OK
        self.restart()

    def restart(self):
        self.watcher = watcher.Watcher(
            Source(self),
            watcher.WatchLimits(
                polls=paces.PollLimits(fast=0.25, interval=1, interval_max=1),
                direct=60.0,
            ),
            self.clock,
            sleep=self._sleep,
        )

    def _sleep(self, woken, seconds):
        self.clock.now += seconds

    def _step(self):
        if self.broken is not None:
            raise self.broken
        self.steps += 1
        if self.steps == self.crash_at:
            raise Crash

    # What servers are given

    def draft(self, member, action):
        return heat_values.DerivedConfig(
            name='config',
            group='script',
            config='#!/bin/sh',
            inputs=[
                *(
                    {'name': 'deploy_control_url', 'value': 'http://swift/x'}
                    for _ in range(self.transport == 'TEMP_URL_POLL')
                ),
                {'name': 'who', 'value': self.who},
                {'name': 'deploy_server_id', 'value': member.server_id},
                {'name': 'deploy_action', 'value': action},
                {'name': 'deploy_resource_name', 'value': member.key},
                {'name': 'deploy_signal_transport', 'value': self.transport},
            ],
            outputs=[{'name': 'answer'}],
            options={},
        )

    def derive(self, tasks):
        self._step()
        return [self._derive(task) for task in tasks]

    def _derive(self, task):
        member = task.member
        if member.key in self.refusals:
            return fleets.Refusal(
                task=task,
                reason=self.refusals[member.key],
                fails=task.action != 'DELETE',
            )
        config_id = fleets.new_config_id(GROUP)
        if not task.delivers:
            config_id = task.before.config.id
        is_polled = self.transport == 'TEMP_URL_POLL'
        name = signal_names.signal(member.id, config_id)
        return deliveries.Delivery(
            deployment_id=member.id,
            server_id=member.server_id,
            config_id=config_id,
            action=task.action,
            draft=self.draft(member, task.action),
            input_values=None,
            signalling=deliveries.Signalling(
                transport=self.transport,
                answers_by=ANSWERS_BY[self.transport],
                object_name=name if is_polled else None,
                report_name=body.report_name(name) if is_polled else None,
                signer=self.signer if is_polled else None,
            ),
            reading_project=None,
            before=task.before,
        )

    def write(self, made):
        self._step()
        for each in made:
            assert each.config_id not in self.configs
            config = heat_values.Config(id=each.config_id, **vars(each.draft))
            self.configs[each.config_id] = config
            self.rows[each.deployment_id] = heat_values.DeploymentRow(
                id=each.deployment_id,
                server_id=each.server_id,
                config=config,
                action=each.action,
                status='IN_PROGRESS' if each.is_signalled else 'COMPLETE',
                reason='',
                outputs={},
                input_values={},
                reading_project=None,
            )
        self._sweep()
        self._step()

    def _sweep(self):
        used = {row.config.id for row in self.rows.values()}
        self.configs = {k: v for k, v in self.configs.items() if k in used}

    def tell(self, action, reason):
        self.events.append(reason)

    def push(self, made):
        self._tell_servers({each.server_id for each in made})

    def _tell_servers(self, server_ids):
        for server_id in sorted(server_ids):
            self._step()
            self.told[server_id] = [
                row.config
                for row in self.rows.values()
                if row.server_id == server_id
            ]
        self._step()

    # Rows

    def read(self, ids):
        self._step()
        self._tell_rest()
        return {each: self.rows[each] for each in ids if each in self.rows}

    def settle(self, outcomes):
        self._step()
        counted = set()
        for ticket, outcome in outcomes.items():
            row = self.rows.get(ticket.deployment_id)
            if row and row.config.id == ticket.config_id and row.in_progress:
                self.change(
                    row,
                    status=outcome.status,
                    reason=outcome.reason,
                    outputs=outcome.outputs,
                )
                counted.add(ticket)
        self._step()
        return counted

    def change(self, row, **values):
        self.rows[row.id] = dataclasses.replace(row, **values)

    def begin(self, started):
        self._step()
        self.noted += started

    def withdraw(self, withdrawals):
        self._step()
        withdrawn = []
        for each in withdrawals:
            row = self.rows[each.deployment_id]
            if each.reason is not None:
                if row.config.id != each.config_id or not row.in_progress:
                    continue
                self.change(row, status='FAILED', reason=each.reason)
            self.change(self.rows[row.id], server_id=GROUP)
            withdrawn.append(row.id)
        self._step()
        self.untold |= {each.server_id for each in withdrawals}
        self._tell_rest()
        return withdrawn

    def _tell_rest(self):
        if self.untold:
            if self.breaks_as_it_tells:
                self.breaks_as_it_tells = False
                raise errors.Unavailable('503')
            self._tell_servers(self.untold)
            self.untold = set()

    def gone(self, server_ids):
        return self.lost & set(server_ids)

    def erase(self, ids):
        self._step()
        for each in ids:
            # Else nobody would take their configs from the servers.
            assert self.rows.pop(each).server_id == GROUP
        self._sweep()
        self._step()

    # Signals

    def reports(self):
        return {
            body.report_name(signal_names.signal(row.id, row.config.id))
            for row in self.rows.values()
            if row.server_id in self.begun
        }

    def fetch(self, names):
        self._step()
        there = dict.fromkeys(self.reports(), b'{}') | self.signals
        return [
            there.get(name, errors.NotFound('no such object'))
            for name in names
        ]

    def poll_queue(self, delivery):
        self._step()
        assert self.transport == 'ZAQAR_SIGNAL'
        return self.rows.get(delivery.deployment_id)

    def discard(self, names):
        for name in names:
            self.signals.pop(name, None)

    def request_stop(self, names):
        self.stopped += names

    def key_holds(self, signer):
        return signer not in self.dead

    # The stack

    label = 'Group g'

    def is_cancelled(self, since):
        return self.is_stack_cancelled

    def renew_access(self):
        self.renewed += 1

    # The servers

    def server_name(self, member):
        return member.key

    def work(self):
        for configs in self.told.values():
            for config in configs:
                inputs = {one['name']: one['value'] for one in config.inputs}
                key = inputs['deploy_resource_name']
                run = (key, inputs['deploy_action'], config.id)
                if run in self.ran:
                    continue
                self.ran.append(run)
                member = fleets.Member.of_group(
                    GROUP, key, inputs['deploy_server_id']
                )
                answer = self.answer(key)
                if answer is not None and self.transport == 'TEMP_URL_POLL':
                    name = signal_names.signal(member.id, config.id)
                    self.signals[name] = json.dumps(answer).encode()

    def actions(self):
        found = {}
        for key, action, _ in self.ran:
            found.setdefault(key, []).append(action)
        return found
