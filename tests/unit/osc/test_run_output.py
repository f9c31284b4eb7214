# SPDX-License-Identifier: Apache-2.0
"""``software deployment run output``, as a table and in a folder."""

import os
import pathlib
import stat

import fixtures

from heat_plugins.runs import run_records
from heat_plugins.signals import body
from tests.unit.engine import run_world
from tests.unit.osc import run_door

RUN = run_door.RUN

LONG = 'line\n' * 20_000


class OutputCase(run_door.RunCase):
    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(
            self.useFixture(fixtures.TempDir()).path, 'logs'
        )

    def kept(self, number=0, **outputs):
        """Let the object store have whole outputs, as heat-engine does."""
        objects = self.objects(number)
        store = self.cluster.store()
        store.put_container(objects.container, {})
        objects.keep(body.outcome({'deploy_status_code': 0, **outputs}, ()))

    def output(self, line=''):
        return self.json(f'run output {RUN} {line}')

    def ended(self, *, stdout='out', status=0):
        self.answered(status, deploy_stdout=stdout)
        super().ended()


class OneTest(OutputCase):
    def setUp(self):
        super().setUp()
        self.use(run_world.World(1))

    def test_outputs_are_shown_by_name(self):
        # One that is a time stays as it is.
        time = '2026-11-20T22:00:00Z'
        self.ended(stdout=time)
        assert self.output()[1]['deploy_stdout'] == time
        line = f'run output {RUN} deploy_stdout -f value'
        assert self.run_command(line)[1] == f'{time}\n'
        for line in ('output', 'show'):
            _, shown = self.run_command(f'run {line} {RUN} --local-time')
            assert time in shown
        self.assert_refused(
            f'run output {RUN} weight',
            'has no output weight; there are: deploy_status_code, deploy_std',
        )

    def test_of_a_long_one_the_end_is_shown_and_all_on_request(self):
        self.ended(stdout=LONG)
        self.kept(deploy_stdout=LONG)
        with fixtures.FakeLogger() as logged:
            _, shown = self.output()
        assert LONG.endswith(shown['deploy_stdout'])
        assert len(shown['deploy_stdout']) < len(LONG)
        assert (
            f'of {len(LONG)} characters of deploy_stdout; --whole shows all'
            in logged.output
        )
        assert self.output('--whole')[1]['deploy_stdout'] == LONG


class ManyTest(OutputCase):
    def test_some_are_shown_alone(self):
        self.world.answers = lambda server_id: int(server_id == 'server-2')
        self.ended()
        # A table leaves out the exit status of success.
        _, output = self.run_command(f'run output {RUN}')
        assert output.count('deploy_status_code') == 1
        assert 'deploy_status_code: 1' in output
        codes = [e['outputs']['deploy_status_code'] for e in self.output()[1]]
        assert sorted(codes) == [0, 0, 1]
        for options, expected in (
            ('--failed', ['deployment-2']),
            ('--stack s1 --failed', []),
            ('--stack stack-0', ['deployment-0', 'deployment-2']),
        ):
            _, shown = self.output(options)
            assert [each['resource'] for each in shown] == expected, options
        assert self.output('--target 1')[1]['deploy_stdout'] == 'out'
        _, shown = self.output('deploy_stdout')
        assert [e['outputs'] for e in shown] == [{'deploy_stdout': 'out'}] * 3
        for options, said in (
            ('--stack s7', 'no target in stack s7'),
            # Its server is one of the other stack.
            ('--stack s0 --target server-1', 'no target'),
        ):
            self.assert_refused(f'run output {RUN} {options}', said)

    def test_a_former_attempt_is_shown_by_its_number(self):
        self.ended(stdout='first', status=1)
        self.world.done.clear()
        self.world.send = type(self.world).send.__get__(self.world)
        self.answered(deploy_stdout='second')
        self.run_command(f'run retry {RUN} --wait')
        for options, text in (
            ('', 'second'),
            ('--attempt 1', 'first'),
            ('--attempt 2', 'second'),
        ):
            _, shown = self.output(options)
            found = {e['outputs']['deploy_stdout'] for e in shown}
            assert {text} == found


class FolderTest(OutputCase):
    def save(self):
        with fixtures.FakeLogger() as logged:
            code, told = self.output(f'--output-dir {self.folder}')
        return code, told, logged.output

    def text(self, path):
        return (self.folder / path).read_text()

    def test_it_says_what_was_written_and_not_all_of_it_again(self):
        self.ended()
        code, told, _ = self.save()
        counts = {'targets': 3, 'files': 6, 'not_written': 0}
        assert (code, told) == (0, {'folder': str(self.folder), **counts})
        assert self.text('s0/deployment-2/deploy_status_code') == '0'
        path = self.folder / 's0/deployment-2/deploy_stdout'
        assert path.read_text() == 'out'
        assert stat.S_IMODE(path.stat().st_mode) == 384

    def test_a_long_output_is_written_whole(self):
        self.ended(stdout=LONG)
        for number in (0, 2):
            self.kept(number, deploy_stdout=LONG)
        *_, said = self.save()
        for number in (0, 2):
            assert self.text(f's0/deployment-{number}/deploy_stdout') == LONG
        # It has gone.
        assert said == (
            'Only the end of s1/deployment-1/deploy_stdout is kept\n'
        )
        written = self.text('s1/deployment-1/deploy_stdout')
        assert LONG.endswith(written)
        assert len(written) >= run_records.TAIL

    def test_one_bad_output_does_not_keep_the_rest_from_being_written(self):
        self.ended()
        place = self.folder / 's0/deployment-0/deploy_stdout/in-the-way'
        place.mkdir(parents=True)
        elsewhere = self.folder.with_name('elsewhere')
        elsewhere.mkdir()
        (self.folder / 's0/deployment-2').symlink_to(elsewhere)
        code, told, said = self.save()
        assert (code, told['not_written'], told['files']) == (1, 3, 3)
        assert 's0/deployment-0/deploy_stdout: Is a directory' in said
        assert 'Cannot write s0/deployment-2/deploy_std' in said
        assert os.listdir(elsewhere) == []
        assert self.text('s1/deployment-1/deploy_stdout') == 'out'
