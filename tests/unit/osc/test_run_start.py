# SPDX-License-Identifier: Apache-2.0
"""``openstack software deployment run start``: the order, and its answers."""

import io
import json
import pathlib
import re
import sys

from cliff import commandmanager
import fixtures

from heat_plugins import errors
from heat_plugins.clients import runs as client
from heat_plugins.osc import common
from heat_plugins.runs import run_records
from tests.unit.engine import run_world
from tests.unit.osc import base
from tests.unit.osc import run_door

SECRET = 'a s3cret of the team'


def row(number, *, reason='', variant='v'):
    where = {'resource': f'db{number}', 'server': f'server_{number}'}
    how = {'is_target': not reason, 'variant': variant, 'reason': reason}
    return {'stack': 'shop', **where, **how}


def selection(*rows):
    targets = sum(each['is_target'] for each in rows)
    return client.Selection(
        targets=targets, left_out=0, unmet=[], rows=rows, more=0
    )


class StartCase(run_door.RunCase):
    """A test with heat-engine's answers to orders.

    :ivar orders: what the command has ordered.
    :ivar refusals: what heat-engine answers to the next orders, or an error;
        to others it starts the run.
    """

    def setUp(self):
        super().setUp()
        self.use(run_world.World(1))
        self.orders, self.refusals = [], []
        self.patch(client.Runs, 'start', self.begin)
        self.patch(client.Runs, 'select', self.select)

    def begin(self, *, run_id, **order):
        self.orders.append({'run_id': run_id, **order})
        if self.refusals:
            raise self.refusals.pop(0)
        self.start(run_id, action=order['action'] or 'APPLY')
        return self.client().show(run_id)

    def select(self, **order):
        self.orders.append(order)
        return selection(row(0))

    def order(self, line):
        code, _ = self.json(f'run start {line}')
        assert code == 0
        return self.orders[-1]

    def file(self, name, content):
        path = pathlib.Path(self.useFixture(fixtures.TempDir()).join(name))
        path.write_text(content)
        return path


class OneTest(StartCase):
    def test_one_request_starts_a_run_with_what_is_usual(self):
        code, shown = self.json('run start BACKUP --stack s0')
        assert (code, shown['state'], shown['targets']) == (0, 'running', 1)
        assert f'Run {shown["id"]}: BACKUP on 1 target of s0' in self.said()
        (order,) = self.orders
        assert (order['limits'], order['log_limit']) == ({}, None)
        order = self.order('RELOAD --stack s0 --yes --config c1')
        # Any number of targets starts.
        assert (order['confirm_above'], order['config_id']) == (None, 'c1')
        _, (listed,) = self.json('run start BACKUP --stack shop --dry-run')
        assert listed == row(0)
        assert 'run_id' not in self.orders[-1]

    def test_heat_engine_gets_all_that_is_ordered(self):
        inputs = self.file('inputs.yaml', 'level: 1\npassword: from-file')
        order = self.order(
            'BACKUP --stack-tag t --resource "dep*" --input level=7 '
            f'--inputs-file {inputs} --timeout 60 --delivery-timeout 9 '
            '--max-concurrent 50% --max-errors 3 --canary 1 --pause 5 '
            '--approve-after-canary --deadline 600 --cut-off 300 '
            '--server-metadata role=db --if-running wait --log-limit 300000'
        )
        limits = run_records.RunLimits.asked(order.pop('limits'))
        assert limits == run_records.RunLimits(
            max_concurrent=run_records.Share(50, is_percent=True),
            max_errors=run_records.Share(3),
            canary=1,
            approve_after_canary=True,
            pause=5,
            timeout=60,
            delivery_timeout=9,
            deadline=600,
            cut_off=300,
            if_running=run_records.WAIT,
        )
        del order['run_id']
        assert order == {
            **dict.fromkeys(('config', 'config_id', 'notify')),
            **{'action': 'BACKUP', 'stacks': [], 'tags': ['t']},
            **{'resources': ['dep*'], 'metadata': {'role': 'db'}},
            'inputs': {'level': '7', 'password': 'from-file'},
            **{'log_limit': 300_000, 'confirm_above': 10},
        }
        assert 'from-file' not in self.said()

    def test_what_runs_already_everywhere_was_not_started(self):
        self.world.answers = lambda server_id: None
        self.start(run_door.OTHER)
        code, _ = self.json('run start BACKUP --stack s0 --wait')
        assert code == common.NOT_STARTED

    def test_a_page_is_written(self):
        self.answered(deploy_stdout='1 GB')
        for action, wait in (('BACKUP', ''), ('RELOAD', '--wait')):
            path = self.file('run.html', '')
            line = f'{action} --stack s0 {wait} --output {path}'
            _, shown = self.json(f'run start {line}')
            page = path.read_text()
            assert f'Run {shown["id"]}: {shown["state"]}' in page
            assert f'{action} on s0' in page
            assert ('1 GB' in page) is ('outputs' in shown) is bool(wait)
            assert ('http-equiv="refresh"' in page) is not wait


class RefusedTest(StartCase):
    def test_heat_engine_says_why(self):
        for said in 'no stack shpo', 'mean "level"?', 'Nothing was started: x':
            self.refusals = [errors.Refused(said)]
            message = self.refused('run start BACKUP --stack shpo')
            assert message.startswith(said)
            assert message.count('Nothing was started') == 1
            assert re.search(r'[^.?][.?:] ', message)
        self.refusals = [client.NoDoor('heat-plugins is missing')]
        self.assert_refused('run start BACKUP', 'heat-plugins is missing')

    def test_the_command_line_is_refused_before_an_order(self):
        script = self.file('x', SECRET)
        for line, said in (
            ('--stack shop', 'Name an action'),
            ('BACKUP --stack shop -- uptime', 'Name an action'),
            ('--stack shop --config x -- uptime', 'Name an action'),
            ('BACKUP --approve-after-canary', 'needs --canary'),
            ('BACKUP --notify - --inputs-file -', 'cannot both'),
            (f'BACKUP --inputs-file {script}', 'must hold a map'),
        ):
            message = self.refused(f'run start {line}')
            assert said in message
            assert 's3cret' not in message
        self.assertRaises(SystemExit, self.order, f'BACKUP --input "{SECRET}"')
        assert SECRET not in self.said()
        assert self.orders == []

    def test_what_may_run_is_said_with_its_id(self):
        self.refusals = [errors.Unavailable('503'), KeyboardInterrupt()]
        line = 'run start BACKUP --stack shop'
        message = self.refused(line)
        self.assertRaises(KeyboardInterrupt, self.json, line)
        told = message, self.said()
        for said, order in zip(told, self.orders, strict=True):
            run_id = order['run_id']
            assert f'Run {run_id} may have started' in said
            assert f'software deployment run show {run_id}' in said
            assert 'Nothing was started' not in said


class ManyTest(StartCase):
    def ask(self, answer, *rows):
        """Let heat-engine ask for the number, and the user answer."""
        self.refusals = [client.Unconfirmed(selection(*rows))]
        self.patch(sys, 'stdin', base.Terminal(answer))

    def test_many_targets_are_confirmed(self):
        self.ask('y\n', *map(row, range(11)))
        self.order('BACKUP --stack shop')
        asked = self.said()
        assert 'Run BACKUP on these 11 targets? [y/N]' in asked
        assert '  shop server_10\n' in asked
        first, second = self.orders
        assert first['run_id'] == second['run_id']
        assert (first['confirm_above'], second['expected']) == (10, 11)
        self.ask('n\n', row(1))
        self.assert_refused('run start BACKUP', 'Nothing was started')
        assert len(self.orders) == 3

    def test_a_question_says_what_differs(self):
        others = [row(number, variant='w') for number in range(42)]
        lacks = row(99, reason='it has no action')
        self.ask('', row(50), *others, lacks)
        self.refused('run start BACKUP --resource "db*"')
        said = self.said()
        assert '  and 3 more; --dry-run lists all\n' in said
        assert 'They run 2 different configs for BACKUP' in said
        assert 'left out: shop db99: it has no action' in said


class ScriptTest(StartCase):
    def test_a_script_takes_all_inputs(self):
        path = self.file('fix.sh', '#!/bin/sh\nuptime\n')
        order = self.order(
            f'--stack shop --config-file {path} --script-output size '
            '--input who=me --group ansible'
        )
        assert (order['action'], order['inputs']) == ('', {'who': 'me'})
        who, size = ({'name': n, 'type': 'String'} for n in ('who', 'size'))
        script = {'config': '#!/bin/sh\nuptime\n', 'group': 'ansible'}
        declared = {'inputs': [who], 'outputs': [size]}
        assert order['config'] == script | declared
        self.run_command('run start --stack shop -f json -- uptime -p --stack')
        config = self.orders[-1]['config']
        assert config['config'] == '#!/bin/sh\nexec uptime -p --stack\n'
        assert config['group'] == 'script'
        assert 'Note: --stack stands after "--"' in self.said()

    def test_heat_engine_knows_whom_to_tell(self):
        wanted = {'url': 'https://x/p4th', 'secret': SECRET, 'waits': 600}
        path = self.file('notify.json', json.dumps(wanted))
        order = self.order(f'BACKUP --stack shop --notify {path}')
        assert order['notify'] == wanted
        assert not re.search('p4th|s3cret', self.said())
        self.patch(sys, 'stdin', io.StringIO(json.dumps(wanted)))
        order = self.order('RELOAD --stack shop --notify -')
        assert order['notify'] == wanted


def test_it_hides_no_command_and_none_hides_it():
    manager = commandmanager.CommandManager('no.such.namespace')
    for name in base.commands():
        manager.add_command(name.replace('_', ' '), None)
    prefix = 'software deployment run'
    # As a stack, and as an action.
    for line in 'list list', 'wait list', 'start list', 'start --stack list':
        verb, *words = line.split()
        found = manager.find_command([*prefix.split(), verb, *words])
        assert found[1:] == (f'{prefix} {verb}', words)
