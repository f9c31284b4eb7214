# SPDX-License-Identifier: Apache-2.0
"""The reference leaves nothing out."""

import configparser
import fnmatch
import pathlib
import re

import testtools

ROOT = pathlib.Path(__file__).parents[2]
PAGES = ROOT / 'doc/source'


def entry_points(group):
    found = configparser.ConfigParser(delimiters=('=',))
    found.optionxform = str
    found.read(ROOT / 'setup.cfg')
    lines = found['entry_points'][group].strip().splitlines()
    return {line.partition('=')[0].strip() for line in lines}


class ReferenceTest(testtools.TestCase):
    def test_every_command_is_on_its_page(self):
        page = (PAGES / 'reference/commands.rst').read_text()
        patterns = re.findall(r':command: (.+)', page)
        for name in entry_points('openstack.orchestration.v1'):
            command = name.replace('_', ' ')
            matching = [p for p in patterns if fnmatch.fnmatch(command, p)]
            assert len(matching) == 1, command

    def test_every_type_has_an_example(self):
        examples = ''.join(
            path.read_text()
            for path in (ROOT / 'contrib/examples').rglob('*.yaml')
        )
        # Names that only templates of old use.
        former = {
            f'OS::Heat::{name}'
            for name in (
                'SoftwareDeployments',
                'StructuredDeployments',
                'StructuredDeploymentGroup',
            )
        }
        for name in entry_points('heat_plugins.resources') - former:
            assert f'type: {name}\n' in examples
