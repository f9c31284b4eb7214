# SPDX-License-Identifier: Apache-2.0
"""``software deployment operation output``, as a table and in a folder."""

import os
import pathlib
import stat

import fixtures

from heat_plugins.runs.fleet.records import layout
from tests.unit.osc import test_operation
from tests.unit.runs.fleet import simulation


class OutputCase(test_operation.OperationCase):
    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(
            self.useFixture(fixtures.TempDir()).path, 'logs'
        )

    def ran(self, world=None):
        """Run an operation on all servers; return its ID."""
        if world is not None:
            self.use(world)
        stacks = ' '.join(f'--stack {one.name}' for one in self.world.stacks)
        return self.run_it(f'{stacks} --wait')[1]['id']

    def save(self, operation):
        line = f'operation output {operation} --output-dir {self.folder}'
        return self.json(line)


class FolderTest(OutputCase):
    def text(self, path):
        return (self.folder / path).read_text()

    def test_it_says_what_was_written_and_not_all_of_it_again(self):
        code, told = self.save(self.ran())
        self.assertEqual(
            {
                'folder': str(self.folder),
                'targets': 4,
                'files': 8,
                'not_written': 0,
            },
            told,
        )
        self.assertEqual(0, code)
        self.assertEqual('n2', self.text('s0/db2/deploy_stdout'))
        self.assertEqual('0', self.text('s0/db2/deploy_status_code'))

    def test_a_long_output_is_written_whole(self):
        self.world.stdout = 'line\n' * 2000
        self.save(self.ran())
        written = self.text('s1/db1/deploy_stdout')
        self.assertEqual(self.world.stdout, written)

    def test_a_long_output_that_has_gone_is_told_of(self):
        self.world.stdout = 'line\n' * 2000
        operation = self.ran()
        objects = self.world.cluster.container(simulation.CONTAINER).objects
        del objects[layout.outputs(operation, 1, 1)]
        with fixtures.FakeLogger() as logged:
            self.save(operation)
        told = 'Only the end of s0/db2/deploy_stdout is kept\n'
        self.assertEqual(told, logged.output)
        written = self.text('s0/db2/deploy_stdout')
        self.assertEqual(self.world.stdout[-4096:], written)

    def test_one_that_has_not_started_has_no_outputs(self):
        _, shown = self.run_it('--stack s0 --max-concurrent 1')
        _, told = self.save(shown['id'])
        self.assertEqual((2, 0), (told['targets'], told['files']))
        self.assertEqual([], os.listdir(self.folder))

    def test_one_bad_output_does_not_keep_the_rest_from_being_written(self):
        operation = self.ran()
        (self.folder / 's0/db0/deploy_stdout/in-the-way').mkdir(parents=True)
        elsewhere = self.folder.with_name('elsewhere')
        elsewhere.mkdir()
        (self.folder / 's0/db2').symlink_to(elsewhere)
        with fixtures.FakeLogger() as logged:
            code, told = self.save(operation)
        self.assertEqual((1, 3, 5), (code, told['not_written'], told['files']))
        self.assertIn('s0/db0/deploy_stdout: Is a directory', logged.output)
        self.assertIn('Cannot write s0/db2/deploy_stdout', logged.output)
        self.assertEqual([], os.listdir(elsewhere))
        self.assertEqual('n3', self.text('s1/db3/deploy_stdout'))

    def test_many_failures_are_counted(self):
        operation = self.ran(simulation.World(8, stacks=1))
        self.folder.mkdir()
        (self.folder / 's0').write_text('in the way')
        with fixtures.FakeLogger() as logged:
            _, told = self.save(operation)
        self.assertEqual(16, told['not_written'])
        self.assertEqual(11, logged.output.count('Cannot write'))
        self.assertIn('Cannot write 6 more', logged.output)

    def test_the_page_is_for_its_user_alone(self):
        page = self.folder.with_name('run.html')
        self.run_it(f'--stack s0 --wait --output {page}')
        self.assertEqual(0o600, stat.S_IMODE(page.stat().st_mode))


class ServersTest(OutputCase):
    def setUp(self):
        super().setUp()
        self.use(simulation.World(4, server_names=['a', 'a', 'b', 'c']))

    def test_a_table_leaves_out_the_exit_status_of_success(self):
        self.world.fail = {3}
        operation = self.ran()
        _, output = self.run_command(f'operation output {operation}')
        self.assertEqual(1, output.count('deploy_status_code'))
        self.assertIn('deploy_status_code: 1', output)
        _, shown = self.json(f'operation output {operation}')
        codes = [one['outputs']['deploy_status_code'] for one in shown]
        self.assertEqual([0, 0, 0, 1], sorted(codes))

    def test_a_server_that_two_stacks_have_is_named_with_its_stack(self):
        operation = self.ran()
        line = f'operation output {operation} --server a'
        self.assert_refused(
            line,
            'Several stacks have a server a: s0 (server ID server-0), '
            's1 (server ID server-1)',
            '--stack',
        )
        _, shown = self.json(f'{line} --stack s1')
        self.assertEqual(
            [('s1', 'server-1', 'a')],
            [
                (one['stack'], one['server'], one['server_name'])
                for one in shown
            ],
        )
        _, shown = self.json(f'operation output {operation} --server server-0')
        self.assertEqual(['s0'], [one['stack'] for one in shown])

    def test_a_stack_or_server_that_it_does_not_have_is_an_error(self):
        operation = self.ran()
        line = f'operation output {operation}'
        self.assert_refused(f'{line} --stack s7', 'no target in stack s7')
        self.assert_refused(
            f'{line} --server serve-3',
            'on server serve-3; did you mean "server-3"',
        )
        # Its name is one of the other stack.
        self.assert_refused(f'{line} --stack s0 --server c', 'on server c')

    def test_a_former_attempt_is_shown_by_its_number(self):
        self.use(simulation.World(4, fail=[2]))
        self.run_it('--stack s0 --wait')
        (operation,) = [one['id'] for one in self.json('operation list')[1]]
        self.world.fail.clear()
        self.json(f'operation retry {operation} --wait')
        for command in 'output', 'show':
            _, last = self.json(f'operation {command} {operation} --attempt 2')
            self.assertEqual(
                [('db2', 'complete')],
                [(one['resource'], one['state']) for one in last],
            )
            _, first = self.json(
                f'operation {command} {operation} --attempt 1'
            )
            self.assertEqual(
                [('db0', 'complete'), ('db2', 'failed')],
                [(one['resource'], one['state']) for one in first],
            )
        line = f'operation show {operation} --attempt 1 --failed'
        self.assertEqual(
            ['db2'], [one['resource'] for one in self.json(line)[1]]
        )
        self.assertEqual(
            (0, []), self.json(f'operation show {operation} --attempt 3')
        )
