# SPDX-License-Identifier: Apache-2.0
"""``openstack software deployment timeline``."""

import csv
import io
import os
import pathlib
import types

import fixtures

from heat_plugins.osc import common
from tests.unit.osc import base
from tests.unit.runs import fake_heat


class TimelineTest(base.CommandCase):
    def setUp(self):
        super().setUp()
        self.now = 1_800_000_000.0
        self.heat = fake_heat.Heat()
        runs = types.SimpleNamespace(list=lambda **wanted: iter(()))
        self.patch(common, 'runs', lambda manager: runs)
        self.patch(common, 'orchestration', lambda manager: self.heat)
        self.stack = self.heat.add_stack('shop')
        self.heat.add_deployment(self.stack)
        place = self.stack, 'db'
        self.heat.happens(*place, 'CREATE_IN_PROGRESS', self.now + 1)
        self.heat.happens(*place, 'CREATE_FAILED', self.now + 6)

    def show(self, line=''):
        return self.run_command(f'timeline shop {line}')

    def test_it_draws_for_people(self):
        code, output = self.show()
        assert code == 0
        assert 'CREATE failed 5 s' in output
        assert '✗✗✗' in output
        assert '\x1b' not in output

    def test_it_lists_for_programs(self):
        for which in ('yaml', 'csv', 'value'):
            _, output = self.show(f'-f {which}')
            assert '2027-01-15T08:00:06Z' in output
            assert '✗' not in output
        _, output = self.show('-c Resource -c State')
        assert '| db       | failed |' in output
        _, (found,) = self.json('timeline shop')
        assert found == {
            'Kind': 'deployment',
            'Resource': 'db',
            'What': 'CREATE',
            'State': 'failed',
            'Started': '2027-01-15T08:00:01Z',
            'Ended': '2027-01-15T08:00:06Z',
            'Duration': 5,
            'Reason': 'state changed',
        }

    def test_a_file_is_drawn_and_can_be_listed_too(self):
        folder = self.useFixture(fixtures.TempDir())
        for name, begin in (('a.svg', '<svg '), ('b.html', '<!DOCTYPE')):
            path = folder.join(name)
            code, output = self.show(f'--output {path} -f csv')
            assert code == 0
            assert pathlib.Path(path).read_text().startswith(begin)
            assert os.stat(path).st_mode & 511 == 384
            assert len(list(csv.DictReader(io.StringIO(output)))) == 1
        assert self.show(f'--output {path}') == (0, '')
        none = folder.join('none', 'x.svg')
        said = f'Cannot write {none}: No such file'
        self.assert_refused(f'timeline shop --output {none}', said)
        self.assertRaises(SystemExit, self.show, '--output x.png')
        assert 'x.png must end in .svg or .html' in self.stderr.getvalue()

    def test_since_takes_a_time_and_refuses_what_is_none(self):
        since = '2027-01-15 10:00:00+01:00'
        assert self.json('timeline shop --since', since)[1] == []
        said = 'is none of: today, yesterday, a date (2026-11-20), a time'
        for since in ('0h', 'Friday', '5m', '9999999999h', '5m' * 99):
            self.assertRaises(SystemExit, self.show, f'--since {since}')
            assert said in self.stderr.getvalue()
            self.stderr.truncate(0)

    def test_a_terminal_without_unicode_gets_ascii(self):
        kind = 'OS::Heat::SoftwareDeployment'
        self.heat.add_resource(self.stack, 'dépôt', kind, 'x')
        self.heat.happens(self.stack, 'dépôt', 'CREATE_FAILED', self.now)
        _, output = self.run_command('timeline shop', encoding='ascii')
        assert 'x failed' in output
        assert 'd?p?t' in output
