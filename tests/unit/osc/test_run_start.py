# SPDX-License-Identifier: Apache-2.0
"""``openstack software deployment run start``."""

import copy
import io
import json
import re
import sys
import types

from cliff import commandmanager
import fixtures
from oslo_config import cfg

from heat_plugins.osc import common
from heat_plugins.osc.runs import following
from heat_plugins.osc.runs import start_commands
from heat_plugins.runs import ordering
from heat_plugins.runs import run_records
from tests.unit import fake_swift
from tests.unit.engine import heat_door
from tests.unit.osc import base
from tests.unit.resources import deployments
from tests.unit.resources import test_deployment_triggers as triggers
from tests.unit.resources import test_group_as_one as groups

SECRET = 'a s3cret of the team'
URL = 'https://hooks.example.com/p4th'


class StartCase(base.CommandCase, heat_door.DoorCase):
    """A test with a stack, and a door behind Heat's API.

    :ivar requests: what the command has sent to Heat.
    """

    TEMPLATE = deployments.template(resources={'config': triggers.CONFIG})

    def setUp(self):
        super().setUp()
        self.stack = self.created(self.TEMPLATE, name='shop', tags=['t'])
        self.requests = []
        answer = self.api.answer
        self.lose = 0

        def counted(request):
            self.requests.append(request)
            found = answer(request)
            if self.lose:
                self.lose -= 1
                return 503, None, {}
            return found

        self.patch(self.api, 'answer', counted)
        self.patch(common, 'runs', lambda manager: self.runs)
        swift = fake_swift.Cluster()
        self.patch(common, 'store', lambda manager: swift.store())
        clock = types.SimpleNamespace(
            time=lambda: heat_door.NOW,
            monotonic=lambda: self.now,
            sleep=lambda seconds: self.sleep(seconds),
        )
        for module in (common, following):
            self.patch(module, 'time', clock)

    def begin(self, line):
        return self.json(f'run start {line}')

    def run_of(self, shown):
        return self.store.load(shown['id']).run

    def only(self):
        """Return the one run that is stored."""
        (stored,) = self.stored().values()
        return stored.run

    def soon(self, **outcome):
        """Let the first target end as soon as the command waits."""

        def sleep(seconds):
            self.now += seconds
            run = self.only()
            if run.ended:
                return
            phase = outcome.pop('phase', run_records.Phase.COMPLETE)
            state = run_records.State(outcome.pop('state', phase.value))
            ended = {
                'state': state,
                'number': 1,
                'started_at': int(heat_door.NOW),
                'ended_at': int(heat_door.NOW),
                **outcome,
            }
            self.change(
                run.id, {0: ended}, phase=phase, ended_at=int(heat_door.NOW)
            )

        self.sleep = sleep

    def assert_nothing_started(self):
        self.assertEqual(({}, []), (self.stored(), self.woken))


class OneTest(StartCase):
    def test_one_request_starts_a_run(self):
        code, shown = self.begin('BACKUP --stack shop --resource deployment')
        self.assertEqual(
            (0, 'running', 1), (code, shown['state'], shown['targets'])
        )
        self.assertEqual(1, len(self.requests))
        self.assertEqual([shown['id']], self.woken)
        self.assertIn(
            f'Run {shown["id"]}: BACKUP on 1 target of shop',
            self.stderr.getvalue(),
        )

    def test_heat_engine_gets_all_that_is_ordered(self):
        inputs = self.useFixture(fixtures.TempDir()).join('inputs.yaml')
        with open(inputs, 'w') as file:
            file.write('level: 1\npassword: from-file')
        _, shown = self.begin(
            'BACKUP --stack-tag t --resource "dep*" --input level=7 '
            f'--inputs-file {inputs} --timeout 60 --delivery-timeout 9 '
            '--max-concurrent 50% --max-errors 3 --canary 1 --pause 5 '
            '--approve-after-canary --deadline 600 --cut-off 300 '
            '--if-running wait --log-limit 300000'
        )
        order = self.run_of(shown).order
        self.assertEqual(
            run_records.RunLimits(
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
            ),
            order.limits,
        )
        self.assertEqual(
            ({'level': '7', 'password': 'from-file'}, 300_000),
            (order.inputs, order.log_limit),
        )
        self.assertEqual('stack tag t, resource dep*', order.targets)
        self.assertNotIn('from-file', str(shown) + self.stderr.getvalue())

    def test_heat_engine_knows_what_is_usual(self):
        _, shown = self.begin('BACKUP --stack shop')
        order = self.run_of(shown).order
        self.assertEqual(run_records.RunLimits(), order.limits)
        self.assertIsNone(order.log_limit)

    def test_wait_ends_with_the_outputs(self):
        self.soon(outputs={'size': '1 GB'})
        code, shown = self.begin('BACKUP --stack shop --wait')
        self.assertEqual((0, 'complete'), (code, shown['state']))
        self.assertEqual('1 GB', shown['outputs']['size'])

    def test_what_runs_already_everywhere_was_not_started(self):
        self.soon(phase=run_records.Phase.FAILED, state='skipped')
        code, _ = self.begin('BACKUP --stack shop --wait')
        self.assertEqual(common.NOT_STARTED, code)

    def test_a_page_is_written(self):
        folder = self.useFixture(fixtures.TempDir())
        for wait in '', '--wait':
            path = folder.join(f'run{wait}.html')
            self.soon(outputs={'size': '1 GB'})
            _, shown = self.begin(
                f'BACKUP --stack shop {wait} --output {path}'
            )
            with open(path, encoding='utf-8') as file:
                page = file.read()
            self.assertIn(f'Run {shown["id"]}: {shown["state"]}', page)
            self.assertIn('BACKUP on shop', page)
            self.assertEqual(bool(wait), '1 GB' in page)
            self.assertEqual(not wait, 'http-equiv="refresh"' in page)
            if not wait:
                self.runs.cancel(shown['id'])
                self.runs.delete(shown['id'])

    def test_targets_are_listed_before(self):
        _, (listed,) = self.begin('BACKUP --stack shop --dry-run')
        self.assertEqual(
            ('shop', 'deployment', True),
            (listed['stack'], listed['resource'], listed['is_target']),
        )
        self.assert_nothing_started()


class RefusedTest(StartCase):
    def refusal(self, line):
        message = self.refused(f'run start {line}')
        self.assert_nothing_started()
        return message

    def test_heat_engine_says_why(self):
        for line, said in (
            ('BACKUPS --stack shop', 'did you mean "BACKUP"'),
            ('BACKUP --stack shpo', 'no stack shpo'),
            ('BACKUP --stack shop --resource nothing', 'runs on deployments'),
            ('BACKUP --stack-tag none', 'No stack has the tag none'),
            ('BACKUP', 'No targets are selected'),
            ('BACKUP --stack shop --input levell=1', 'did you mean "level"'),
            ('BACKUP --stack shop --input level=x', 'must be a number'),
            ('BACKUP --stack shop --log-limit 1', '"log_limit" must be'),
            ('--config nothing --stack shop', 'nothing'),
        ):
            message = self.refusal(line)
            self.assertIn(said, message)
            self.assertRegex(message, r'[^.?][.?] Nothing was started\Z')

    def test_what_to_run_has_to_be_said_once(self):
        for line in (
            '--stack shop',
            'BACKUP --stack shop -- uptime',
            '--stack shop --config x -- uptime',
        ):
            self.assertIn('Name an action', self.refusal(line))
        self.assertIn(
            '--approve-after-canary needs --canary',
            self.refusal('BACKUP --stack shop --approve-after-canary'),
        )
        self.assertEqual([], self.requests)

    def test_an_input_without_a_name_is_not_quoted(self):
        self.assertRaises(SystemExit, self.begin, f'BACKUP --input "{SECRET}"')
        self.assertNotIn(SECRET, self.stderr.getvalue())

    def test_a_file_that_is_no_map_is_not_quoted(self):
        path = self.useFixture(fixtures.TempDir()).join('inputs.yaml')
        with open(path, 'w') as file:
            file.write(SECRET)
        message = self.refusal(f'BACKUP --stack shop --inputs-file {path}')
        self.assertIn('must hold a map', message)
        self.assertNotIn('s3cret', message)

    def test_a_reader_starts_nothing(self):
        self.patch(self, 'runs', self.client(roles=['reader']))
        message = self.refusal('BACKUP --stack shop')
        self.assertIn('not authorized to use stacks:update', message)
        self.assertIn('Nothing was started', message)

    def test_engines_without_a_door_are_named(self):
        self.api.old = 99
        self.assertIn(
            'heat-plugins is missing', self.refusal('BACKUP --stack shop')
        )


class LostTest(StartCase):
    def test_what_is_not_known_is_said_with_the_id(self):
        self.lose = 99
        message = self.refused('run start BACKUP --stack shop')
        run_id = self.only().id
        self.assertIn(f'Run {run_id} may have started', message)
        self.assertIn(
            f'openstack software deployment run show {run_id}', message
        )
        self.assertNotIn('Nothing was started', message)

    def test_ctrl_c_does_not_hide_what_may_run(self):
        answer = self.api.answer

        def interrupted(request):
            answer(request)
            raise KeyboardInterrupt

        self.patch(self.api, 'answer', interrupted)
        self.assertRaises(KeyboardInterrupt, self.begin, 'BACKUP --stack shop')
        self.assertIn(
            f'Run {self.only().id} may have started', self.stderr.getvalue()
        )


class ManyTest(StartCase):
    TEMPLATE = groups.group(
        *'abcdefghijk', resources={'config': triggers.CONFIG}
    )

    def answer_with(self, text):
        self.patch(sys, 'stdin', base.Terminal(text))

    def test_more_than_ten_are_confirmed(self):
        self.answer_with('y\n')
        code, shown = self.begin('BACKUP --stack shop')
        self.assertEqual((0, 11), (code, shown['targets']))
        asked = self.stderr.getvalue()
        self.assertIn('Run BACKUP on these 11 targets? [y/N]', asked)
        self.assertIn('  shop server_k\n', asked)
        first, second = (
            ordering.read(each['input_values']) for each in self.api.posts
        )
        self.assertEqual((None, 11), (first.expected, second.expected))
        self.assertEqual(2, len(self.requests))

    def test_a_no_starts_nothing(self):
        self.answer_with('n\n')
        self.assert_refused(
            'run start BACKUP --stack shop', 'Nothing was started'
        )
        self.assert_nothing_started()

    def test_what_is_selected_meanwhile_was_not_confirmed(self):
        self.answer_with('y\n')
        confirm = self.api.answer

        def changed(request):
            if len(self.api.posts) == 1:
                order = json.loads(request.body)['input_values']
                order['resources'] = ['deployment.a']
                body = {'server_id': 'heat-plugins', 'input_values': order}
                request.body = json.dumps(body)
            return confirm(request)

        self.patch(self.api, 'answer', changed)
        message = self.refused('run start BACKUP --stack shop')
        self.assertIn('11 targets were confirmed, and 1 are', message)
        self.assertEqual(1, len(re.findall('(?i)nothing was start', message)))
        self.assert_nothing_started()

    def test_a_question_says_what_differs(self):
        self.patch(start_commands, '_SHOWN', 2)
        self.answer_with('')
        other = copy.deepcopy(triggers.CONFIG)
        other['properties']['configs'][1]['config'] = '#!/bin/sh -e'
        self.created(
            deployments.template(resources={'config': other}), name='other'
        )
        self.created(deployments.template(), name='lacks')
        self.refused('run start BACKUP --resource "dep*"')
        said = self.stderr.getvalue()
        self.assertIn('  and 10 more; --dry-run lists all\n', said)
        self.assertIn('They run 2 different configs for BACKUP', said)
        self.assertIn('left out: lacks deployment: it has no action', said)

    def test_yes_asks_nobody(self):
        code, shown = self.begin('BACKUP --stack shop --yes')
        self.assertEqual(
            (0, 11, 1), (code, shown['targets'], len(self.requests))
        )

    def test_ten_need_no_confirmation(self):
        _, shown = self.begin('BACKUP --stack shop --resource "*.[a-j]"')
        self.assertEqual((10, 1), (shown['targets'], len(self.requests)))


class ScriptTest(StartCase):
    def setUp(self):
        super().setUp()
        self.path = self.useFixture(fixtures.TempDir()).join('fix.sh')
        with open(self.path, 'w', encoding='utf-8') as file:
            file.write('#!/bin/sh\nuptime\n')

    def test_a_script_runs_on_servers(self):
        _, shown = self.begin(
            f'--stack shop --resource server --config-file {self.path} '
            '--script-output size --input who=me --group script'
        )
        order = self.run_of(shown).order
        self.assertEqual(
            ('APPLY', '#!/bin/sh\nuptime\n'),
            (shown['action'], shown['script']),
        )
        self.assertEqual(['server'], [each.resource for each in order.members])
        self.assertEqual(
            (
                [{'name': 'who', 'type': 'String'}],
                [{'name': 'size', 'type': 'String'}],
            ),
            (order.config['inputs'], order.config['outputs']),
        )

    def test_an_action_beside_it_names_it_in_the_records(self):
        config = self.heat.rpc.create_software_config(
            self.heat.context,
            group='script',
            name='own',
            config='#!/bin/sh\nlogin\n',
            inputs=[{'name': 'password'}],
            outputs=[],
            options={},
        )
        _, shown = self.begin(
            f'BACKUP --stack shop --config {config["id"]} --input password=x'
        )
        self.assertEqual(
            ('BACKUP', '#!/bin/sh\nlogin\n'),
            (shown['action'], shown['script']),
        )
        order = self.run_of(shown).order
        self.assertEqual(
            (config['id'], {'password': 'x'}),
            (order.config['id'], order.inputs),
        )

    def test_a_command_after_two_dashes(self):
        self.run_command('run start --stack shop -f json -- uptime -p --stack')
        order = self.only().order
        self.assertEqual(
            '#!/bin/sh\nexec uptime -p --stack\n', order.config['config']
        )
        self.assertIn(
            'Note: --stack stands after "--"', self.stderr.getvalue()
        )


class NotifyTest(StartCase):
    def setUp(self):
        super().setUp()
        self.file = self.useFixture(fixtures.TempDir()).join('notify.yaml')
        hosts = 'notify_hosts'
        cfg.CONF.set_override(hosts, ['hooks.example.com'], 'heat_plugins')
        self.addCleanup(cfg.CONF.clear_override, hosts, 'heat_plugins')

    def write(self, **values):
        with open(self.file, 'w') as file:
            json.dump({'url': URL, 'secret': SECRET, **values}, file)

    def test_heat_engine_knows_whom_to_tell(self):
        self.write(events=['failure'], waits=600)
        code, shown = self.begin(f'BACKUP --stack shop --notify {self.file}')
        self.assertEqual(
            (0, 'https://hooks.example.com'), (code, shown['notify'])
        )
        webhook = self.run_of(shown).order.webhook
        self.assertEqual((URL, SECRET), (webhook['url'], webhook['secret']))
        for secret in ('p4th', 's3cret'):
            self.assertNotIn(secret, str(shown) + self.stderr.getvalue())

    def test_a_mistake_is_named_and_not_quoted(self):
        for values, said in (
            ({'url': 'hooks/s3cret'}, 'The URL of a webhook'),
            ({'url': 'https://other.example.com/s3cret'}, 'notify_hosts'),
            ({'secret': 's3cret'}, '16 to'),
            ({'secret': None}, 'needs the texts'),
            ({'events': ['failur']}, 'failure'),
            ({'waits': -1}, 'seconds'),
            ({'secrets': 's3cret'}, 'did you mean "secret"'),
        ):
            self.write(**values)
            message = self.refused(
                f'run start BACKUP --stack shop --notify {self.file}'
            )
            self.assertIn(said, message)
            self.assertIn('Nothing was started', message)
            self.assertNotIn('s3cret', message)
        self.assert_nothing_started()

    def test_standard_input_has_it_alone(self):
        text = json.dumps({'url': URL, 'secret': SECRET})
        self.patch(sys, 'stdin', io.StringIO(text))
        line = 'run start BACKUP --stack shop --notify -'
        self.assert_refused(f'{line} --inputs-file -', 'cannot both')
        code, _ = self.json(line)
        self.assertEqual(0, code)


class NamesTest(base.testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.manager = commandmanager.CommandManager('no.such.namespace')
        for name in base.commands():
            self.manager.add_command(name.replace('_', ' '), None)

    def matched(self, line):
        _, name, arguments = self.manager.find_command(line.split())
        return name, arguments

    def test_it_hides_no_command_and_none_hides_it(self):
        prefix = 'software deployment run'
        for verb in 'list', 'show', 'wait', 'delete', 'start':
            # As a stack, or as an action.
            for line in f'{prefix} {verb} list', f'{prefix} start {verb}':
                name = ' '.join(line.split()[:4])
                self.assertEqual((name, line.split()[4:]), self.matched(line))
        self.assertEqual(
            (f'{prefix} start', ['--stack', 'list']),
            self.matched(f'{prefix} start --stack list'),
        )
