# SPDX-License-Identifier: Apache-2.0
"""What servers sent is written for its user alone, and nowhere else."""

import os
import pathlib
import stat

import fixtures
import testtools

from heat_plugins.osc import private_files


class PrivateFilesCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.addCleanup(os.umask, os.umask(0o022))

    def mode(self, path):
        return stat.S_IMODE(os.lstat(self.folder / path).st_mode)


class FileTest(PrivateFilesCase):
    def setUp(self):
        super().setUp()
        self.path = self.folder / 'run.html'

    def test_only_its_user_reads_it(self):
        private_files.write(self.path, 'secret')
        self.assertEqual(0o600, self.mode('run.html'))

    def test_one_that_others_could_read_is_replaced(self):
        self.path.write_text('of yesterday')
        self.path.chmod(0o644)
        private_files.write(self.path, 'secret')
        self.assertEqual('secret', self.path.read_text())
        self.assertEqual(0o600, self.mode('run.html'))

    def test_a_link_is_replaced_and_not_followed(self):
        mine = self.folder / 'mine'
        mine.write_text('kept')
        self.path.symlink_to(mine)
        private_files.write(self.path, 'new')
        self.assertEqual('kept', mine.read_text())
        self.assertEqual('new', self.path.read_text())

    def test_what_cannot_be_written_leaves_nothing_behind(self):
        (self.path / 'in-the-way').mkdir(parents=True)
        self.assertRaises(OSError, private_files.write, self.path, 'new')
        self.assertEqual(['run.html'], os.listdir(self.folder))

    def test_half_a_surrogate_pair_is_written_as_its_escape(self):
        private_files.write(self.path, 'half \ud800 a pair, ü')
        self.assertEqual('half \\ud800 a pair, ü', self.path.read_text())


class TreeTest(PrivateFilesCase):
    def setUp(self):
        super().setUp()
        self.tree = private_files.Tree(self.folder / 'logs')

    def written(self):
        """Return what is there: the texts, by their paths."""
        top = self.folder / 'logs'
        return {
            str(path.relative_to(top)): path.read_text()
            for path in top.rglob('*')
            if path.is_file()
        }

    def test_only_its_user_enters_its_folders(self):
        self.tree.write(('shop', 'db'), 'deploy_stdout', 'x')
        for path in ('logs', 'logs/shop', 'logs/shop/db'):
            self.assertEqual(0o700, self.mode(path))

    def test_usual_names_stay(self):
        self.tree.write(('shop', 'tier.0.db'), 'deploy_stdout', 'x')
        self.assertEqual({'shop/tier.0.db/deploy_stdout': 'x'}, self.written())

    def test_a_folder_that_is_a_link_is_not_entered(self):
        elsewhere = self.folder / 'elsewhere'
        elsewhere.mkdir()
        (self.folder / 'logs/shop').symlink_to(elsewhere)
        write = self.tree.write
        self.assertRaises(OSError, write, ('shop', 'db'), 'deploy_stdout', 'x')
        self.assertEqual([], os.listdir(elsewhere))

    def test_names_that_no_file_can_have_are_told_apart(self):
        names = [
            *('a/b', 'a_b', 'A_b', 'a%2Fb', '..', '.', '.hidden', '', '_'),
            *('x' * 600, 'x' * 601, 'ü' * 300, '\udcff', '\ud800', '\0', '\n'),
        ]
        for name in names:
            self.tree.write(('shop', 'db'), name, f'of {name!a}')
            self.tree.write((name, 'db'), 'size', f'in {name!a}')
        written = self.written()
        self.assertEqual(
            sorted(
                f'{word} {name!a}' for word in ('of', 'in') for name in names
            ),
            sorted(written.values()),
        )
        # Where letter case does not count, none is another one.
        self.assertEqual(len(written), len({path.lower() for path in written}))
        self.assertEqual("of 'a_b'", written['shop/db/a_b'])
        self.assertEqual("of 'a/b'", written['shop/db/a%2Fb'])

    def test_the_same_name_again_is_another_file(self):
        for text in ('one', 'two'):
            self.tree.write(('shop', 'db'), 'size', text)
        self.assertEqual({'one', 'two'}, set(self.written().values()))
