# SPDX-License-Identifier: Apache-2.0
"""A machine that runs no playbook, and servers, for tests."""

import json

from heat_plugins import errors
from heat_plugins.validations import validation_operations
from tests.unit.plans import fakes


def playbook(name, *groups, hosts='all', **more):
    metadata = {'name': name, 'groups': list(groups), **more}
    play = {'hosts': hosts, 'vars': {'metadata': metadata}, 'tasks': []}
    return json.dumps([play]).encode()


def result(state='ok', host='localhost', task='look', message=''):
    """Return the event of a task that has ended on a host."""
    changed = state == 'changed'
    data = {'play': 'all', 'task': task, 'host': host, 'duration': 0.1}
    data['res'] = {'changed': changed, 'msg': message}
    event = 'ok' if changed else state
    return {'event': f'runner_on_{event}', 'event_data': data}


def began(task):
    """Return the event of a task that has started."""
    return {'event': 'playbook_on_task_start', 'event_data': {'name': task}}


def end(status='successful', left=0):
    """Return the end of a playbook, which is no event of ansible-runner's."""
    return {'status': status, 'left': left}


class Process:
    """A playbook that reports what a test has told.

    It ends a second after it has begun, unless its report has no end; then
    it does when it is stopped.
    """

    def __init__(self, machine, setting, path):
        self._machine = machine
        self.setting = setting
        self._begun_at = machine.now
        news = list(machine.reports.get(path, [result(), end()]))
        self._news = [one for one in news if 'status' not in one]
        self.end = next((one for one in news if 'status' in one), None)
        self.stopped = False
        self.closed = False

    def ended(self):
        if self.end is None:
            return self.stopped
        return self.stopped or self._machine.now - self._begun_at >= 1

    def news(self):
        found, self._news = self._news, []
        return found

    def status(self):
        return self.end['status'] if self.end else ''

    def complaint(self):
        return 'out of memory'

    def stop(self):
        assert not self.closed
        self.stopped = True

    def close(self):
        assert not self.closed
        self.closed = True
        self._machine.running.remove(self)
        return self.end['left'] if self.end else 0


class Machine:
    """Where nothing really runs.

    :ivar reports: by the path of a playbook, what it reports.
    :ivar begun: all processes so far.
    :ivar while_waiting: called whenever somebody waits.
    """

    def __init__(self):
        self.now = 1000.0
        self.reports = {}
        self.begun = []
        self.running = []
        self.most = 0
        self.absent = None
        self.broken = ()
        self.while_waiting = lambda: None

    # As `running.Machine` has them

    def monotonic(self):
        return self.now

    def check(self):
        if self.absent:
            raise errors.Refused(self.absent)

    def begin(self, setting, path):
        if path in self.broken:
            raise OSError(28, 'No space left on device')
        made = Process(self, setting, path)
        self.begun.append(made)
        self.running.append(made)
        self.most = max(self.most, len(self.running))
        return made

    def sleep(self, seconds):
        self.now += seconds
        self.while_waiting()


class Servers:
    """The servers of stacks, as a test has them.

    :ivar outputs: by stack and name.
    :ivar found: by stack.
    """

    def __init__(self):
        self.outputs = {}
        self.found = {}

    def output(self, stack, name):
        if stack not in self.found:
            raise errors.NotFound(f'There is no stack {stack}')
        return self.outputs.get((stack, name))

    def servers(self, stack):
        return self.found[stack]


class Cloud(fakes.Cloud):
    """A cloud with a plan `plan`, and what validations need beside that."""

    def __init__(self):
        super().__init__()
        self.machine = Machine()
        self.servers = Servers()
        self.heat.output = self.servers.output
        self.heat.servers = self.servers.servers
        self.validations = validation_operations.ValidationOperations(
            self.plans, machine=self.machine
        )
        files = {
            'validations/cpu.yaml': playbook('CPUs', 'prep', 'size'),
            'validations/ram.yaml': playbook('Memory', 'prep'),
            'validations/dns.yaml': playbook('Names', 'after'),
            'validations/roles/look/tasks/main.yaml': b'[]',
        }
        self.plans.create('plan', fakes.content(**files))
