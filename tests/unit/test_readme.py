# SPDX-License-Identifier: Apache-2.0
"""What the README and the pages for users say is so."""

import pathlib
import re
import subprocess
import sys

import testtools

from tests import pages

ROOT = pathlib.Path(__file__).resolve().parents[2]
README = (ROOT / 'README.rst').read_text()
PAGES = {
    path.name: path.read_text() for path in (ROOT / 'doc/source').glob('*.rst')
}
EXAMPLES = ROOT / 'contrib/examples'


class ReadmeTest(testtools.TestCase):
    def test_template_is_the_example(self):
        hello = (EXAMPLES / 'hello.yaml').read_text()
        self.assertIn(hello, pages.blocks(README))

    def test_every_path_in_it_is_there(self):
        paths = set(re.findall(r'(?:contrib|doc)/[\w./-]*\w', README))
        self.assertIn('contrib/minicloud/minicloud', paths)
        missing = [path for path in paths if not (ROOT / path).exists()]
        self.assertEqual([], missing)

    def test_command_prints_a_line_of_the_kind_shown(self):
        (shown,) = (
            block
            for block in pages.blocks(README)
            if block.startswith('plugin_')
        )
        done = subprocess.run(
            [sys.executable, '-m', 'heat_plugins'],
            capture_output=True,
            text=True,
            check=True,
        )
        for line in (shown, done.stdout):
            self.assertRegex(
                line, r'^plugin_dirs = \S+/heat_plugins/plugin_dir\n$'
            )


class PagesTest(testtools.TestCase):
    # The first page lists them all; another is the mini cloud's README.
    PAGES = PAGES.keys() - {'index.rst', 'minicloud.rst'}

    def test_none_installs_by_a_name_that_is_not_ours_on_an_index(self):
        for name, text in PAGES.items():
            commands = ''.join(pages.blocks(text))
            self.assertNotIn('heat-plugins[', text, name)
            by_name = r'pip install.* heat-plugins\b'
            self.assertNotRegex(commands, by_name, name)
