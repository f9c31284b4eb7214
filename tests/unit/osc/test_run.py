# SPDX-License-Identifier: Apache-2.0
"""``openstack software deployment run …``."""

import dataclasses
import datetime
import re
import subprocess
import sys

import testtools

from heat_plugins.osc import command_line
from heat_plugins.osc import common
from heat_plugins.osc.runs import run_commands
from heat_plugins.runs import run_service
from tests.unit.osc import base
from tests.unit.runs import fake_heat

# Whatever a laptop with the commands has no need of.
_IMPORT = """
import importlib, sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition('.')[0] in ('heat', 'mistral', 'mistral_lib'):
            raise ImportError(f'{name} is not there')
sys.meta_path.insert(0, Blocked())
for name in sys.argv[1:]:
    module, _, attribute = name.partition(':')
    getattr(importlib.import_module(module), attribute)
"""


class EntryPointTest(testtools.TestCase):
    def test_the_commands_import_without_heat(self):
        targets = sorted(base.commands().values())
        done = subprocess.run(
            [sys.executable, '-c', _IMPORT, *targets],
            capture_output=True,
            text=True,
            check=False,
        )
        self.assertEqual('', done.stderr)
        self.assertEqual(0, done.returncode)

    def test_no_name_is_one_of_heatclients(self):
        theirs = {
            'software_config_create',
            'software_config_delete',
            'software_config_list',
            'software_config_show',
            'software_deployment_create',
            'software_deployment_delete',
            'software_deployment_list',
            'software_deployment_metadata_show',
            'software_deployment_output_show',
            'software_deployment_show',
        }
        self.assertEqual(set(), theirs & set(base.commands()))


class ServerTest(base.CommandTestCase):
    def setUp(self):
        super().setUp()
        nested = self.heat.add_stack('nested', parent=self.stack.id)
        self.heat.add_resource(
            self.stack, 'group', 'OS::Heat::ResourceGroup', 'g', nested.id
        )
        self.heat.add_resource(nested, '0', 'OS::Nova::Server', 'server-1')
        self.run_ = self.start()

    def test_a_table_has_its_name_and_programs_its_id_too(self):
        _, output = self.run_command('run list shop')
        self.assertIn('| group.0 |', output)
        self.assertNotIn('server-1', output)
        _, (found,) = self.json('run list shop')
        self.assertEqual(
            ('server-1', 'group.0'), (found['server'], found['server_name'])
        )

    def test_show_has_both(self):
        _, output = self.run_command(f'run show shop {self.run_.id}')
        self.assertRegex(output, r'server +\| server-1 ')
        self.assertRegex(output, r'server_name +\| group\.0 ')

    def test_actions_are_listed_with_it(self):
        _, output = self.run_command('action list shop')
        self.assertIn('| group.0 |', output)
        _, found = self.json('action list shop')
        self.assertEqual(
            ('server-1', 'group.0'),
            (found[0]['Server'], found[0]['Server name']),
        )

    def test_one_that_is_no_resource_has_its_id(self):
        self.heat.add_deployment(self.stack, 'web', 'server-2')
        _, output = self.run_command('action list shop web')
        self.assertIn('| server-2 |', output)


class FilterTest(base.CommandTestCase):
    def setUp(self):
        super().setUp()
        self.heat.add_resource(
            self.stack, 'db_server', 'OS::Nova::Server', 'server-1'
        )
        nested = self.heat.add_stack('nested', parent=self.stack.id)
        self.heat.add_resource(
            self.stack, 'group', 'OS::Heat::ResourceGroup', 'g', nested.id
        )
        self.heat.add_deployment(nested, 'web', 'server-2')
        self.heat.add_resource(nested, 'box', 'OS::Nova::Server', 'server-2')
        self.failed = self.start()
        self.answer(deploy_status_code=1)
        self.now += 3600
        self.show(self.failed)
        self.other = self.start('FAIL/OVER')

    def listed(self, filters):
        _, found = self.json(f'run list shop {filters}')
        return [one['id'] for one in found]

    def test_by_server(self):
        there = self.start(resource='group.web')
        for server in ('server-2', 'group.box'):
            self.assertEqual([there.id], self.listed(f'--server {server}'))

    def test_by_failure(self):
        self.assertEqual([self.failed.id], self.listed('--failed'))
        self.now += 4000
        self.assertEqual(
            [self.other.id, self.failed.id], self.listed('--failed')
        )

    def test_by_time_what_ended_before_is_left_out(self):
        self.patch(command_line.time, 'time', lambda: self.now)
        self.assertEqual([self.other.id], self.listed('--since 30min'))
        self.assertEqual(2, len(self.listed('--since 2h')))

    def test_by_day(self):
        self.enterContext(base.local_zone('HPT-05:30'))
        day = datetime.datetime.fromtimestamp(self.now, datetime.UTC)
        midnight = day.replace(hour=0, minute=0, second=0)
        # A minute after midnight in UTC, which is 5.5 hours late here.
        now = midnight.timestamp() + 60
        self.patch(command_line.time, 'time', lambda: now)
        for given, local, seconds in (
            ('today', False, 60),
            ('yesterday', False, 86460),
            ('today', True, 60 + 5.5 * 3600),
            ('yesterday', True, 86460 + 5.5 * 3600),
            (f'{midnight:%Y-%m-%d}', False, 60),
            (f'{midnight:%Y-%m-%d}T05:30', True, 60),
            (f'{midnight:%Y-%m-%d}T01:00+01:00', True, 60),
            ('2h', True, 7200),
        ):
            found = command_line.Since(given).seconds(local=local)
            self.assertEqual(now - seconds, found, given)

    def test_times_are_local_on_request(self):
        self.enterContext(base.local_zone('HPT-05:30'))
        for line in (
            'run list shop',
            f'run show shop {self.failed.id}',
            'run list shop -f csv',
            f'run show shop {self.failed.id} -f value -c started_at',
        ):
            _, before = self.run_command(line)
            _, after = self.run_command(f'{line} --local-time')
            times = re.findall(r'\d{4}-\d\d-\d\dT[\d:]+Z', before)
            self.assertNotEqual([], times)
            self.assertEqual(
                [datetime.datetime.fromisoformat(one) for one in times],
                [
                    datetime.datetime.fromisoformat(one)
                    for one in re.findall(r'\d{4}-[-\dT:]+\+05:30', after)
                ],
            )

    def test_an_output_that_is_a_time_stays_as_it_is(self):
        self.enterContext(base.local_zone('HPT-05:30'))
        run = self.other
        self.answer(deploy_stdout='2026-11-20T22:00:00Z')
        for line in ('run output', 'run show'):
            line = f'{line} shop {run.id} --local-time'
            _, shown = self.run_command(line)
            self.assertIn('2026-11-20T22:00:00Z', shown)

    def test_what_exists_and_has_no_runs_is_an_empty_list(self):
        for filters in (
            '--resource group',
            '--resource group.web',
            '--server group.box',
            '--action CREATE',
        ):
            self.assertEqual([], self.listed(filters))

    def test_what_does_not_exist_is_an_error_that_names_what_does(self):
        for filters, said in (
            (
                'shop --resource group.wbe',
                'no resource group.wbe, and no run of one; did you mean '
                '"group.web"?',
            ),
            ('shop --server db_sever', 'did you mean "db_server"?'),
            ('shop --action BAKCUP', 'did you mean "BACKUP"?'),
            ('shpo', 'did you mean "shop"?'),
        ):
            self.assert_refused(f'run list {filters}', said)
        said = self.refused('run list shop --resource nosuch')
        self.assertNotIn('did you', said)

    def test_what_only_runs_know_by_now_exists(self):
        self.answer()
        self.heat.members[self.stack.id] = []
        self.assertEqual(2, len(self.listed('--resource db')))
        self.assertEqual([], self.listed('--resource db --state running'))
        self.assertEqual([], self.listed('--server db_server --state running'))

    def test_an_id_of_a_stack_is_not_compared_with_names(self):
        self.refused('run list', fake_heat.new_id())
        self.assertNotIn('stack_names ', self.heat.asked)

    def test_a_run_without_the_name_has_that_of_today(self):
        self.records.write(
            dataclasses.replace(self.show(self.other), server_name=None)
        )
        self.assertEqual(2, len(self.listed('--server db_server')))
        _, shown = self.json(f'run show shop {self.other.id}')
        self.assertEqual('db_server', shown['server_name'])


class RunTest(base.CommandTestCase):
    def setUp(self):
        super().setUp()
        self.run_ = self.start(inputs={'password': 's3cret'})

    def test_every_format(self):
        for form in ('json', 'yaml', 'csv', 'value', 'table'):
            for line in ('run list shop', f'run show shop {self.run_.id}'):
                code, output = self.run_command(line, '-f', form)
                self.assertEqual(0, code)
                self.assertIn(self.run_.id, output)
                self.assertNotIn('s3cret', output)

    def test_show_a_column(self):
        _, output = self.run_command(
            f'run show shop {self.run_.id} -f value -c state'
        )
        self.assertEqual('waiting\n', output)

    def test_a_table_leaves_out_what_there_is_nothing_to_say_about(self):
        _, output = self.run_command(f'run show shop {self.run_.id}')
        self.assertNotIn('late_result', output)
        self.assertNotIn('None', output)

    def test_also_in_a_list(self):
        _, output = self.run_command('run list shop')
        self.assertNotIn('None', output)
        _, (found,) = self.json('run list shop')
        self.assertIsNone(found['duration'])

    def test_durations_have_units_in_tables_and_are_numbers_in_json(self):
        self.now += 90
        self.answer()
        _, output = self.run_command('run list shop')
        self.assertIn('| 1 min 30 s |', output)
        _, (found,) = self.json('run list shop')
        self.assertEqual((90, 3600), (found['duration'], found['timeout']))

    def test_they_are_sorted_as_numbers(self):
        self.now += 90
        self.answer()
        self.runs.history('shop', run_service.Filter())
        self.start()
        self.now += 7
        self.answer()
        _, output = self.run_command('run list shop --sort-column Duration')
        self.assertLess(output.index(' 7 s '), output.index(' 1 min 30 s '))

    def test_columns_are_named_as_in_the_table_or_in_json(self):
        for column in ('Started', 'started_at', 'STARTED'):
            _, output = self.run_command(f'run list shop -c {column} -f csv')
            self.assertTrue(output.startswith('"started_at"\n"2027-'), output)
        _, output = self.run_command('run list shop -c ended_at')
        self.assertIn('| Ended |', output)

    def test_what_the_encoding_lacks_is_escaped(self):
        self.answer(deploy_status_code=1, deploy_stderr='größer')
        self.run_command(f'run show shop {self.run_.id}', encoding='ascii')
        _, output = self.run_command(
            f'run output shop {self.run_.id} deploy_stderr', encoding='ascii'
        )
        self.assertIn('gr\\xf6\\xdfer', output)

    def test_of_several_those_that_can_are_cancelled(self):
        self.heat.add_deployment(self.stack, 'web', 'server-2')
        other = self.start(resource='web')
        code, found = self.json(
            f'run cancel shop nonsense {self.run_.id} {other.id}'
        )
        self.assertEqual(1, code)
        self.assertEqual(['cancelled'] * 2, [one['state'] for one in found])
        code, found = self.json('run delete shop --all')
        self.assertEqual((0, 2), (code, len(found)))

    def test_one_that_the_object_store_fails_does_not_stop_the_others(self):
        self.heat.add_deployment(self.stack, 'web', 'server-2')
        other = self.start(resource='web')
        # Both are read at a time; which of them it meets is open.
        self.cluster.fail(1, 503, 'GET')
        code, (found,) = self.json(
            f'run cancel shop {self.run_.id} {other.id}'
        )
        self.assertEqual((1, 'cancelled'), (code, found['state']))
        self.assertIn(found['id'], {self.run_.id, other.id})

    def test_show_and_watch(self):
        self.soon(lambda: self.answer(deploy_status_code=1) and None)
        code, shown = self.json(f'run show shop {self.run_.id} --watch')
        self.assertEqual((0, 'failed'), (code, shown['state']))

    def test_wait_for_all_that_go_on(self):
        self.soon(lambda: self.answer() and None)
        code, (shown,) = self.json('run wait shop')
        self.assertEqual((0, self.run_.id), (code, shown['id']))
        code, shown = self.json('run wait shop')
        self.assertEqual((0, []), (code, shown))

    def test_wait_for_so_long_and_no_longer(self):
        self.patch(run_commands.following.time, 'monotonic', lambda: self.now)
        code, (shown,) = self.json(
            f'run wait shop {self.run_.id} --timeout 30'
        )
        self.assertEqual(common.STILL_RUNNING, code)
        self.assertEqual('waiting', shown['state'])
        self.assertIn('run wait shop', self.stderr.getvalue())

    def test_output(self):
        long = 'x' * 9000
        self.answer(size='1 GB', deploy_stdout=long)
        _, shown = self.json(f'run output shop {self.run_.id}')
        self.assertEqual(4096, len(shown['deploy_stdout']))
        _, shown = self.json(f'run output shop {self.run_.id} --whole')
        self.assertEqual(long, shown['deploy_stdout'])
        _, output = self.run_command(
            f'run output shop {self.run_.id} size -f value'
        )
        self.assertEqual('1 GB\n', output)
        self.refused(f'run output shop {self.run_.id} weight')

    def test_cancel(self):
        code, (shown,) = self.json(f'run cancel shop {self.run_.id}')
        self.assertEqual((0, 'cancelled'), (code, shown['state']))
        self.assertEqual([], self.heat.given())
        _, shown = self.json(f'run show shop {self.run_.id}')
        self.assertEqual('ann', shown['cancelled_by'])

    def test_rerun(self):
        self.answer()
        code, shown = self.json(
            f'run rerun shop {self.run_.id} --input level=5'
        )
        self.assertEqual((0, self.run_.id), (code, shown['repeats']))
        self.assertEqual(['level', 'password'], shown['inputs'])
        self.assertEqual('s3cret', self.inputs()['password'])

    def test_one_that_cannot_be_read_is_deleted_by_its_id_alone(self):
        self.answer()
        self.json(f'run show shop {self.run_.id}')
        unreadable = self.start()
        self.garble(unreadable)
        code, (found,) = self.json('run list shop')
        self.assertEqual((0, self.run_.id), (code, found['id']))
        exc = self.refused(f'run show shop {unreadable.id}')
        self.assertIn('run delete', str(exc))
        self.json('run delete shop --all')
        self.assertEqual([unreadable.key], self.records.keys())
        self.assertEqual(
            (0, []), self.json(f'run delete shop {unreadable.id}')
        )
        self.assertEqual([], self.records.keys())

    def test_delete(self):
        self.refused(f'run delete shop {self.run_.id}')
        self.answer()
        self.json('run delete shop --all')
        _, found = self.json('run list shop')
        self.assertEqual([], found)
