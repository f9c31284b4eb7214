# SPDX-License-Identifier: Apache-2.0
"""The README, the reference and the examples leave nothing out."""

import configparser
import fnmatch
import pathlib
import re

from heat_plugins import config
from tests import pages

ROOT = pathlib.Path(__file__).parents[2]
PAGES = ROOT / 'doc/source'
EXAMPLES = ROOT / 'contrib/examples'
README = (ROOT / 'README.rst').read_text()

#: Types that only templates of old use.
FORMER = (
    'OS::Heat::SoftwareDeployments',
    'OS::Heat::StructuredDeployments',
    'OS::Heat::StructuredDeploymentGroup',
)


def entry_points(group):
    found = configparser.ConfigParser(delimiters=('=',))
    found.optionxform = str
    found.read(ROOT / 'setup.cfg')
    lines = found['entry_points'][group].strip().splitlines()
    return {line.partition('=')[0].strip() for line in lines}


def test_every_command_is_on_its_page():
    page = (PAGES / 'reference/commands.rst').read_text()
    patterns = re.findall(r':command: (.+)', page)
    for name in entry_points('openstack.orchestration.v1'):
        command = name.replace('_', ' ')
        matching = [p for p in patterns if fnmatch.fnmatch(command, p)]
        assert len(matching) == 1, command


def test_every_type_has_an_example():
    examples = ''.join(path.read_text() for path in EXAMPLES.rglob('*.yaml'))
    for name in entry_points('heat_plugins.resources').difference(FORMER):
        assert f'type: {name}\n' in examples


def test_the_readme_shows_the_example_and_names_paths_that_are_there():
    assert (EXAMPLES / 'hello.yaml').read_text() in pages.blocks(README)
    paths = set(re.findall(r'(?:contrib|doc)/[\w./-]*\w', README))
    assert 'contrib/minicloud/minicloud' in paths
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_no_page_installs_by_a_name_that_is_not_ours_on_an_index():
    for path in PAGES.glob('*.rst'):
        text = path.read_text()
        commands = ''.join(pages.blocks(text))
        assert 'heat-plugins[' not in text, path
        assert not re.search(r'pip install.* heat-plugins\b', commands), path


def test_the_generator_finds_every_option_and_the_secret_is_not_logged():
    assert config.list_opts() == [('heat_plugins', config.OPTS)]
    assert all(opt.help for opt in config.OPTS)
    (secret,) = [opt for opt in config.OPTS if opt.secret]
    assert secret.name == 'temp_url_secret'
