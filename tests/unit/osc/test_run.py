# SPDX-License-Identifier: Apache-2.0
"""``openstack software deployment run …`` on runs that are there."""

import datetime
import pathlib
import re
import subprocess
import sys
from unittest import mock
import uuid

import fixtures
import testtools

from heat_plugins.engine.runs import door
from heat_plugins.osc import command_line
from heat_plugins.osc import common
from heat_plugins.runs import run_records
from tests.unit.engine import run_world
from tests.unit.osc import base
from tests.unit.osc import run_door

RUN, OTHER = run_door.RUN, run_door.OTHER
READ = datetime.datetime.fromisoformat

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
        line = [sys.executable, '-c', _IMPORT, *targets]
        done = subprocess.run(line, capture_output=True, check=False)
        assert (done.returncode, done.stderr) == (0, b'')

    def test_no_name_is_one_of_heatclients(self):
        verbs = 'metadata_show output_show create delete list show'
        for each in verbs.split():
            for kind in 'config', 'deployment':
                assert f'software_{kind}_{each}' not in base.commands()


class ListTest(run_door.RunCase):
    def listed(self, filters=''):
        code, found = self.json(f'run list {filters}')
        assert code == 0
        return [each['id'] for each in found]

    def test_filters(self):
        self.use(run_world.World(1))
        self.world.answers = lambda server_id: 1
        self.ended(action='RESTART')
        self.world.now += 3600
        self.world.answers = lambda server_id: None
        self.start(OTHER)
        self.patch(command_line.time, 'time', lambda: self.world.now)
        for filters, expected in (
            ('--stack stack-0 --server server-0 --who ann', [OTHER, RUN]),
            ('--server server-9', []),
            ('--action RESTART', [RUN]),
            ('--state running', [OTHER]),
            ('--failed', [RUN]),
            ('--who ben', []),
            ('--schedule nightly', []),
            ('--since 30min', [OTHER]),
            ('--until 30min', [RUN]),
        ):
            assert expected == self.listed(filters), filters

    def test_many_pages_are_read_as_far_as_they_are_wanted(self):
        for number in range(130):
            order = self.world.order(str(uuid.UUID(int=number)))
            run = run_records.RunRecord.new(order)
            self.world.store.create(run_world.PROJECT, run, 'engine')
        assert len(self.listed()) == 100
        assert len(self.listed('--limit 120')) == 120
        assert len(self.requests()) == 1 + 2

    def test_an_empty_list_of_a_stack_that_does_not_exist_is_an_error(self):
        self.heat.add_stack('shop')
        assert self.listed() == []
        assert self.listed('--stack shop') == []
        said = 'no stack shpo', 'did you mean "shop"?'
        self.assert_refused('run list --stack shpo', *said)
        with fixtures.FakeLogger() as logged:
            assert self.listed('--schedule nightly') == []
        assert 'with the ID nightly has started' in logged.output
        # A run knows a stack that is deleted.
        self.ended()
        assert self.listed('--stack s0 --state running') == []

    def test_times_are_local_on_request(self):
        self.enterContext(base.local_zone('HPT-05:30'))
        self.ended()
        show = f'show {RUN}'
        for line in ('list', 'list -f csv', show, f'{show} --targets'):
            _, before = self.run_command(f'run {line}')
            _, after = self.run_command(f'run {line} --local-time')
            utc = re.findall(r'\d{4}-\d\d-\d\dT[\d:]+Z', before)
            local = re.findall(r'\d{4}-[-\dT:]+\+05:30', after)
            assert utc != []
            assert [*map(READ, utc)] == [*map(READ, local)]
        # Files for programs have other names of columns.
        _, output = self.run_command('run list -c CREATED -f csv')
        assert output.startswith('"created_at"\n"2027-'), output

    def test_a_day_is_that_of_the_zone(self):
        self.enterContext(base.local_zone('HPT-05:30'))
        day = datetime.datetime.fromtimestamp(self.world.now, datetime.UTC)
        midnight = day.replace(hour=0, minute=0, second=0)
        # A minute after midnight in UTC, which is 5.5 hours late here.
        now = midnight.timestamp() + 60
        self.patch(command_line.time, 'time', lambda: now)
        for given, local, seconds in (
            ('today', False, 60),
            ('yesterday', True, 86460 + 5.5 * 3600),
            (f'{midnight:%Y-%m-%d}', False, 60),
            (f'{midnight:%Y-%m-%d}T05:30', True, 60),
            (f'{midnight:%Y-%m-%d}T01:00+01:00', True, 60),
            ('90s', False, 90),
            ('30min', False, 1800),
            ('2h', True, 7200),
            ('7d', False, 7 * 86400),
            ('1w', False, 7 * 86400),
        ):
            found = command_line.Since(given).seconds(local=local)
            assert now - seconds == found, given


class NameTest(run_door.RunCase):
    def test_a_part_of_an_id_is_enough_and_a_whole_one_costs_one_request(self):
        self.start()
        for name in (RUN[:4], RUN.upper(), RUN):
            self.api.seen.clear()
            _, shown = self.json(f'run show {name}')
            assert shown['id'] == RUN
        assert [r for r in self.requests() if RUN not in r.url] == []
        self.start(OTHER, action='RESTART')
        for line, *said in (
            ('show 0000', 'several runs', RUN, OTHER),
            ('cancel 0000', 'several runs', RUN, OTHER),
            ('show 99', 'begins or ends with 99'),
            ('show ""', 'begins or ends'),
            (f'show {run_door.RUN[:-1]}1', 'Heat has no run 5'),
        ):
            self.assert_refused(f'run {line}', *said)


class ShowTest(run_door.RunCase):
    def test_one_target_is_shown_with_its_run(self):
        self.use(run_world.World(1))
        self.answered(status=1, deploy_stderr='no größer space')
        self.ended()
        _, shown = self.json(f'run show {RUN}')
        what = {'action': 'BACKUP', 'created_by': 'ann', 'timeout': 3600}
        where = {'stack': 's0', 'server': 'server-0', 'inputs': ['secret']}
        ended = {'state': 'failed', 'counts': {'failed': 1}}
        assert (what | where | ended).items() <= shown.items()
        assert 'exit status' in shown['reason']
        assert shown['outputs']['deploy_stderr'] == 'no größer space'
        _, output = self.run_command(f'run show {RUN}', encoding='ascii')
        assert 'no gr\\xf6\\xdfer space' in output
        for hidden in ('percent', 'late_result', 'None', 'limits', 'counts'):
            assert hidden not in output

    def test_what_was_asked_and_told_is_a_line_each(self):
        at = '2027-01-15T08:00:00Z'
        last = {'state': 'given-up', 'at': at, 'reason': 'It answered 500'}
        next_one = {'state': 'pending', 'at': None, 'reason': ''}
        told = [{'event': 'failed', **last}, {'event': 'complete', **next_one}]
        of, more = door.overview.of, {'notices': told}
        self.patch(door.overview, 'of', lambda *run: of(*run) | more)
        self.start()
        self.run_command(f'run pause {RUN}')
        _, output = self.run_command(f'run show {RUN}')
        assert f'failed: given-up at {at}: It answered 500 ' in output
        assert '| complete: pending ' in output
        assert re.search('Z: pause by user +\\|', output)

    def test_many_are_counted_and_failures_are_a_line_for_each_reason(self):
        self.use(run_world.World(50, max_errors=run_records.Share(50)))
        self.answered(status=1, deploy_stderr='no space')
        self.ended()
        _, shown = self.run_command(f'run show {RUN}')
        (row,) = [row for row in shown.splitlines() if 'exit status' in row]
        assert '50 servers (s0 deployment-0, s1 deployment-1, ' in row
        assert 'and 47 more): failed: the exit status' in row
        assert max(map(len, shown.splitlines())) < 150
        _, shown = self.json(f'run show {RUN}')
        assert (shown['failed'], shown['percent']) == (50, 100)
        assert len(shown['failures']) == 50

    def test_targets_are_listed(self):
        self.world.answers = lambda server_id: int(server_id == 'server-1')
        self.ended()
        for options, expected in (
            ('--targets', ['deployment-0', 'deployment-1', 'deployment-2']),
            ('--failed', ['deployment-1']),
            ('--state complete', ['deployment-0', 'deployment-2']),
            ('--state pending', []),
            ('--targets --state failed', ['deployment-1']),
            ('--attempt 1', ['deployment-0', 'deployment-1', 'deployment-2']),
            ('--attempt 1 --state pending', []),
        ):
            _, found = self.json(f'run show {RUN} {options}')
            shown = [each['resource'] for each in found]
            assert expected == shown, options
        said = f'No target of run {RUN} has had an attempt 7'
        for command in ('show', 'output'):
            self.assert_refused(f'run {command} {RUN} --attempt 7', said)

    def test_a_target_has_a_number_a_resource_and_a_server(self):
        self.use(run_world.World(3))
        order = self.world.order

        def named(*args, **values):
            made = order(*args, **values)
            for each in made.members[1:]:
                object.__setattr__(each, 'server_name', 'web')
            return made

        self.world.order = named
        self.ended()
        for name in ('1', 'deployment-1', 'server-1'):
            _, shown = self.json(f'run show {RUN} --target {name}')
            assert (shown['number'], shown['state']) == (1, 'complete')
        said = f'Run {RUN} has no target server-7', 'did you mean "server-'
        self.assert_refused(f'run show {RUN} --target server-7', *said)
        self.assert_refused(
            f'run output {RUN} --target web',
            'several targets web: 1 (s1 deployment-1, server ID server-1), '
            '2 (s0 deployment-2, server ID server-2)',
        )
        _, output = self.run_command(f'run show {RUN} --targets')
        assert '| web ' in output
        assert 'server-1' not in output

    def test_options_of_which_one_would_be_lost_are_refused(self):
        for line, said in (
            (f'show {RUN} --failed --state complete', 'not allowed with'),
            (f'show {RUN} --target 0 --target 1', 'can be given once'),
            (f'output {RUN} --target 0 --target 1', 'can be given once'),
        ):
            self.assertRaises(SystemExit, self.run_command, f'run {line}')
            assert said in ' '.join(self.said().split())

    def test_progress_is_shown_watched_and_said_once(self):
        self.use(run_world.World(1))
        self.world.answers = lambda server_id: None
        self.start()
        self.reports()
        self.world.pass_time(2)
        self.progress = 40.0, 'table 4'
        expected = {'state': 'running', 'progress': 40, 'message': 'table 4'}
        for options in ('', '--target 0'):
            _, shown = self.json(f'run show {RUN} {options}')
            assert expected.items() <= shown.items()
        self.run_command(f'run wait {RUN} --timeout 30')
        assert self.said().count('running 40% table 4\n') == 1
        self.world.answers = lambda server_id: 1
        self.assert_ends(f'run show {RUN} --watch', 0, 'failed')


class WaitTest(run_door.RunCase):
    def test_exit_codes_say_how_it_ended(self):
        for status, state, code in (
            (0, 'complete', 0),
            (1, 'failed', common.FAILED),
            (None, 'timed-out', common.TIMED_OUT),
            (None, 'cancelled', common.CANCELLED),
        ):
            self.use(run_world.World(1, timeout=30))
            self.world.answers = lambda server_id, status=status: status
            self.start()
            if state == 'cancelled':
                self.run_command(f'run cancel {RUN}')
            self.assert_ends(f'run wait {RUN}', code, state)

    def test_it_says_what_happens(self):
        self.use_slow({'server-2': 1})
        self.start()
        self.run_command(f'run wait {RUN}')
        for said in (
            f'Run {RUN}: BACKUP on 3 targets of s0, s1, at most 50 at',
            's0 deployment-2: failed: the exit status',
            '3 of 3 done: (1 failed, 2|2 complete, 1)',
            f'Run {RUN}: failed after .* s. ',
        ):
            assert re.search(said, self.said())

    def use_slow(self, statuses=()):
        """Let servers answer after a while; with what status, by ID."""
        until, found = self.world.now + 20, dict(statuses)
        self.world.answers = lambda server_id: (
            found.get(server_id, 0) if self.world.now > until else None
        )

    def test_several_and_all_of_a_stack_are_waited_for(self):
        self.use(run_world.World(1))
        self.use_slow({'server-0': 1})
        self.start()
        self.start(OTHER, action='RESTART')
        code, shown = self.json(f'run wait {RUN} {OTHER} {RUN}')
        assert code == common.FAILED
        assert [each['id'] for each in shown] == [RUN, OTHER]
        third = self.start(str(uuid.UUID(int=1)), action='CHECK')
        code, (shown,) = self.json('run wait --stack s0')
        assert (code, shown['id']) == (common.FAILED, third)
        assert self.json('run wait --stack s0') == (0, [])
        self.assert_refused('run wait', 'Name a run')

    def test_it_costs_one_small_request_for_each_poll(self):
        self.world.answers = lambda server_id: None
        self.start()
        self.world.pass_time(5)
        self.api.seen.clear()
        self.run_command(f'run wait {RUN} --timeout 600')
        asked = [each.url for each in self.requests()]
        assert len(asked) < 140
        whole = [url for url in asked if 'newer_than' not in url]
        assert len(whole) < 65
        assert [url for url in asked if 'limit%3D0' not in url] == []

    def test_it_has_its_time(self):
        self.world.answers = lambda server_id: None
        self.start()
        began = self.world.now
        line = f'run wait {RUN} --timeout 12'
        self.assert_ends(line, common.STILL_RUNNING, 'running')
        assert 12 <= self.world.now - began <= 13
        assert 'Stopped waiting' in self.said()
        assert self.said().count(f'run wait {RUN}') == 1
        self.meanwhile = mock.Mock(side_effect=KeyboardInterrupt)
        assert self.json(f'run wait {RUN}')[0] == common.INTERRUPTED
        assert self.said().count(f'run wait {RUN}') == 2
        assert f'run cancel {RUN}' in self.said()

    def test_an_outage_is_ridden_out_and_one_that_lasts_ends_the_wait(self):
        for line in (f'run wait {RUN}', f'run show {RUN} --watch'):
            self.use(run_world.World(1))
            self.use_slow()
            self.start()
            self.api.failing = 20
            self.assert_ends(line, 0, 'complete')
            assert '. Retrying for 300 s' in self.said()
        self.api.failing = 10_000
        for line, seconds in (('', 300), ('--timeout 20', 20)):
            began = self.world.now
            self.assert_refused(f'run wait {RUN} {line}', 'out of order')
            assert seconds <= self.world.now - began <= seconds + 5
        # What does not wait says at once what is wrong.
        began = self.world.now
        self.assert_refused(f'run show {RUN}', 'out of order')
        assert began == self.world.now

    def test_engines_that_are_upgraded_or_show_a_run_late_are_borne_with(self):
        self.use_slow()
        self.world.store.is_late = True
        self.start()
        waits = []

        def upgrade():
            self.world.store.is_late = False
            waits.append(self.world.now)
            self.api.old = 8 if len(waits) == 3 else 0

        self.meanwhile = upgrade
        assert self.json(f'run wait {RUN}')[0] == 0
        assert len(waits) > 3

    def test_a_run_that_needs_a_person_says_so(self):
        self.use(run_world.World(3, canary=1, approve_after_canary=True))
        self.start()
        line, code = f'run wait {RUN} --timeout 30', common.STILL_RUNNING
        self.assert_ends(line, code, 'waiting-for-approval')
        said = self.said()
        assert f'Run {RUN} is waiting-for-approval.' in said
        assert 'run resume' in said
        self.assert_ends(f'run resume {RUN}', 0, 'running')
        self.assert_ends(f'run wait {RUN}', 0, 'complete')

    def test_its_page_is_kept_up_to_date(self):
        path = pathlib.Path(self.useFixture(fixtures.TempDir()).path, 'r.html')
        pages = []
        self.meanwhile = lambda: pages.append(path.read_text())
        self.use_slow()
        self.start()
        self.run_command(f'run wait {RUN} --output {path}')
        self.meanwhile()
        refreshes = ['http-equiv="refresh"' in page for page in pages]
        assert (refreshes[0], refreshes[-1]) == (True, False)
        assert '100% of 3 targets' in pages[-1]
        self.start(OTHER, action='RESTART')
        line = f'run wait {RUN} {OTHER} --output {path}'
        self.assert_refused(line, 'one run')

    def test_one_target_is_waited_for(self):
        self.world.answers = {'server-1': 1}.get
        self.start()
        began = self.world.now
        code, shown = self.json(f'run wait {RUN} --target server-1')
        failed = shown['failures'][0]['resource']
        assert (code, failed) == (common.FAILED, 'deployment-1')
        assert self.world.now - began < 10
        assert 'Stopped waiting' not in self.said()


class RequestTest(run_door.RunCase):
    def setUp(self):
        super().setUp()
        self.world.answers = lambda server_id: None
        self.start()

    def cancelled(self, run_id):
        self.run_command(f'run cancel {run_id}')
        self.world.finish(run_id=run_id)

    def test_a_run_is_paused_resumed_and_cancelled(self):
        for command, state in (('pause', 'paused'), ('resume', 'running')):
            self.assert_ends(f'run {command} {RUN[:6]}', 0, state)
        self.assert_refused(f'run resume {RUN}', 'not paused')
        self.cancelled(RUN)
        self.assert_ends(f'run show {RUN}', 0, 'cancelled')
        self.assert_refused(f'run pause {RUN}', 'has ended')

    def test_of_several_those_that_can_are_cancelled_or_one_target(self):
        self.world.pass_time(3)
        self.assert_ends(f'run cancel {RUN} --target server-1', 0, 'running')
        self.world.pass_time()
        _, (found,) = self.json(f'run show {RUN} --state cancelled')
        assert found['resource'] == 'deployment-1'
        self.assert_refused(f'run cancel {RUN} {OTHER} --target 1', 'one run')
        self.start(OTHER, action='RESTART')
        code, found = self.json(f'run cancel {RUN} nonsense {OTHER}')
        assert (code, [each['id'] for each in found]) == (1, [RUN, OTHER])
        self.world.finish(run_id=RUN)
        self.world.finish(run_id=OTHER)
        states = {each['state'] for each in self.json('run list')[1]}
        assert states == {'cancelled'}

    def test_wait_says_how_servers_stopped(self):
        self.reports(1)
        self.world.pass_time(3)

        def stop():
            for name in self.world.stopped:
                self.world.send(name, 143, deploy_stopped='when told')

        self.meanwhile = stop
        with fixtures.FakeLogger() as logged:
            self.run_command(f'run cancel {RUN}')
        assert 'heat-config-supervisor stops' in logged.output
        assert self.run_command(f'run cancel {RUN} --wait')[0] == 0
        assert 's1 deployment-1: ' in self.said()
        assert 'after the server had begun' in self.said()

    def test_wait_says_which_servers_have_not_reacted(self):
        self.reports(1)
        self.world.pass_time(3)
        began = self.world.now
        code, _ = self.run_command(f'run cancel {RUN} --wait')
        assert code == common.STILL_RUNNING
        assert self.world.now - began <= 35
        said = self.said()
        assert 's1 deployment-1: the server has not reacted' in said
        assert 'runs nothing else' in said
        # Those have not started it, as far as is known.
        assert 'deployment-0' not in said

    def test_a_run_is_deleted_once_it_has_ended(self):
        self.assert_refused(f'run delete {RUN}', 'cancel it first')
        self.cancelled(RUN)
        code, found = self.json(f'run delete {RUN} nope')
        assert (code, found) == (1, [{'id': RUN}])
        assert self.json('run list')[1] == []
        self.assert_refused(f'run delete {RUN}', 'no run')
        self.cancelled(self.start(OTHER))
        # One that has not ended stays.
        self.start(str(uuid.UUID(int=1)))
        assert self.json('run delete --all --stack s7')[1] == []
        assert self.json('run delete --all')[1] == [{'id': OTHER}]
        for line in ('', '--all 77', '77 --stack s0'):
            self.assert_refused(f'run delete {line}', 'Name a run')


class RetryTest(run_door.RunCase):
    def test_what_has_failed_or_is_named_is_repeated_and_followed(self):
        self.use(run_world.World(3, max_errors=run_records.Share(3)))
        self.world.answers = lambda server_id: int(server_id != 'server-0')
        self.ended()
        self.world.answers = lambda server_id: 0
        self.world.done.clear()
        self.assert_refused(f'run retry {RUN} --only server-7', 'server-7')
        self.answered(deploy_stdout='done by 1\nand more')
        line = f'run retry {RUN} --only server-1 --follow'
        self.assert_ends(line, common.FAILED, 'failed')
        assert 's1 deployment-1: done by 1\n' in self.said()
        assert 's0 deployment-0' not in self.said()
        self.assert_ends(f'run retry {RUN}', 0, 'running')
        shown = self.assert_ends(f'run wait {RUN}', 0, 'complete')
        assert shown['counts'] == {'complete': 3}
        self.assert_refused(f'run retry {RUN}', 'succeeded on all')
