# SPDX-License-Identifier: Apache-2.0
"""What the README and the pages for users say is so."""

import pathlib
import re

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
        assert hello in pages.blocks(README)

    def test_every_path_in_it_is_there(self):
        paths = set(re.findall(r'(?:contrib|doc)/[\w./-]*\w', README))
        assert 'contrib/minicloud/minicloud' in paths
        missing = [path for path in paths if not (ROOT / path).exists()]
        assert missing == []


class PagesTest(testtools.TestCase):
    # The first page lists them all; another is the mini cloud's README.
    PAGES = PAGES.keys() - {'index.rst', 'minicloud.rst'}

    def test_none_installs_by_a_name_that_is_not_ours_on_an_index(self):
        for name, text in PAGES.items():
            commands = ''.join(pages.blocks(text))
            assert 'heat-plugins[' not in text, name
            by_name = r'pip install.* heat-plugins\b'
            self.assertNotRegex(commands, by_name, name)
