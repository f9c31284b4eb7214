# SPDX-License-Identifier: Apache-2.0
"""What servers sent is written for its user alone, and nowhere else."""

import os
import pathlib
import stat

import fixtures
import testtools

from heat_plugins.osc import private_files


class PrivateFilesTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.path = self.folder / 'run.html'
        self.addCleanup(os.umask, os.umask(0o022))

    def mode(self, path):
        return stat.S_IMODE(os.lstat(self.folder / path).st_mode)

    def test_one_that_others_could_read_is_replaced(self):
        self.path.write_text('of yesterday')
        self.path.chmod(0o644)
        # Half a surrogate pair is written as its escape.
        private_files.write(self.path, 'secret: \ud800, ü')
        assert self.path.read_text() == 'secret: \\ud800, ü'
        assert self.mode('run.html') == 384

    def test_a_link_is_replaced_and_not_followed(self):
        mine = self.folder / 'mine'
        mine.write_text('kept')
        self.path.symlink_to(mine)
        private_files.write(self.path, 'new')
        assert mine.read_text() == 'kept'
        assert self.path.read_text() == 'new'

    def test_what_cannot_be_written_leaves_nothing_behind(self):
        (self.path / 'in-the-way').mkdir(parents=True)
        self.assertRaises(OSError, private_files.write, self.path, 'new')
        assert os.listdir(self.folder) == ['run.html']

    def test_only_its_user_enters_its_folders_and_none_leads_out(self):
        top = self.folder / 'logs'
        path = private_files.folder(top, 'shop', 'tier.0.db')
        assert self.folder / 'logs/shop/tier.0.db' == path
        for each in ('logs', 'logs/shop', 'logs/shop/tier.0.db'):
            assert self.mode(each) == 448
        path = private_files.folder(top, '..', 'a/b', '.')
        assert self.folder / 'logs/%2E./a%2Fb/%2E' == path
        # Nor does a link.
        (top / 'link').symlink_to(self.folder)
        self.assertRaises(OSError, private_files.folder, top, 'link', 'db')
        assert os.listdir(self.folder) == ['logs']

    def test_names_that_no_file_can_have_are_told_apart(self):
        names = [
            *('a/b', 'a_b', 'a%2Fb', '..', '.', '.hidden', '%2Ehidden', '_'),
            *('x' * 600, 'x' * 601, 'ü' * 300, '\udcff', '\ud800', '\0', '\n'),
        ]
        files = {private_files.file_name(name) for name in names}
        assert len(names) == len(files)
        for file in files:
            private_files.write(self.folder / file, 'x')
