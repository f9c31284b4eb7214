# SPDX-License-Identifier: Apache-2.0
"""The ways in on the page "Installing": as far as they can be tried here."""

import configparser
import pathlib
import re
import subprocess
import textwrap

import fixtures
from jinja2 import sandbox
from oslo_config import cfg
import testtools
import yaml

from tests import pages
from tests.unit import environments

#: What heat-engine's template has at its end, in Kolla.
KOLLA = 'FROM base\n{% block heat_engine_footer %}{% endblock %}\nUSER heat\n'

_FILE = re.compile(r'code-block:: (jinja|ini|yaml)\n\n((?:(?: {3}.*)?\n)+)')


def files(way):
    """Return the texts of the files that a way has, with their languages."""
    return [
        (language, textwrap.dedent(text).strip('\n') + '\n')
        for language, text in _FILE.findall(pages.read('install', way))
    ]


def texts(way, language):
    return [text for each, text in files(way) if each == language]


def kolla(parent):
    """Render a template of Kolla's with the override, as kolla-build does."""
    (override,) = texts('Kolla-Ansible', 'jinja')
    environment = sandbox.SandboxedEnvironment()
    return environment.from_string(override).render(
        parent_template=environment.from_string(parent)
    )


#: What Kolla's override runs.
(LINES,) = re.findall(r'RUN ((?:.*\\\n)*.*)', kolla(KOLLA))


class InstallPageTest(testtools.TestCase):
    def test_kollas_image_of_heat_engine_alone_gets_the_wheel(self):
        rendered = kolla(KOLLA)
        assert '/additions/heat-plugins/*.whl' in rendered
        assert rendered.rstrip().endswith('USER heat')
        other = 'FROM base\n{% block horizon_footer %}{% endblock %}\n'
        assert 'heat' not in kolla(other)

    def test_kolla_copies_the_folder_that_the_image_takes_it_from(self):
        configured = configparser.ConfigParser()
        configured.read_string(texts('Kolla-Ansible', 'ini')[0])
        (section,) = configured.sections()
        assert section == 'heat-engine-additions-heat-plugins'
        folder = pathlib.PurePath(configured[section]['location'])
        assert f'/additions/{folder.name}/*.whl' in kolla(KOLLA)
        (typed,) = pages.blocks(pages.read('install', 'Kolla-Ansible'))
        assert f'cp heat_plugins-*.whl {folder}\n' in typed

    def test_heat_engine_of_the_chart_reads_the_directory_last(self):
        (text,) = texts('OpenStack-Helm', 'yaml')
        values = yaml.safe_load(text)
        ((source,), (made,)) = (
            values['pod']['etcSources']['heat_engine'],
            # A list would replace that of other values.
            values['extraObjects'].values(),
        )
        assert made['metadata']['name'] == source['configMap']['name']
        folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        (folder / 'heat.conf').write_text('[DEFAULT]\nplugin_dirs = /a\n')
        (folder / 'heat.conf.d').mkdir()
        for name, content in made['data'].items():
            (folder / 'heat.conf.d' / name).write_text(content)
        conf = cfg.ConfigOpts()
        conf.register_opt(cfg.ListOpt('plugin_dirs'))
        conf(
            [
                *('--config-file', str(folder / 'heat.conf')),
                *('--config-dir', str(folder / 'heat.conf.d')),
            ]
        )
        assert conf.plugin_dirs[-1] == '/var/lib/openstack/lib/heat'
        # Heat's own directories.
        assert len(conf.plugin_dirs) == 5


class ImageTest(testtools.TestCase):
    """What images run works, and heat-engine finds the plugins there."""

    def setUp(self):
        super().setUp()
        self.environment = environments.Environment(
            self.useFixture(fixtures.TempDir()).path
        )
        self.addCleanup(self.environment.close)

    def run_in_image(self, script):
        """Run it; return the ended process."""
        scratch = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        copied = scratch / 'additions/heat-plugins'
        copied.mkdir(parents=True)
        (scratch / 'tmp').mkdir()
        wheel = environments.wheel()
        (copied / wheel.name).symlink_to(wheel)
        for path in ('/tmp/', '/additions'):
            script = script.replace(path, f'{scratch}{path}')
        return subprocess.run(
            ['bash', '-euo', 'pipefail', '-c', script],
            cwd=scratch,
            env={
                'PATH': f'{self.environment.prefix}/bin:/usr/bin:/bin',
                'PIP_NO_INDEX': '1',
            },
            capture_output=True,
            text=True,
        )

    def assert_installs(self, script):
        done = self.run_in_image(script)
        assert done.returncode == 0, done.stdout + done.stderr
        engine = self.environment.start_engine(
            f'plugin_dirs = {self.environment.prefix}/lib/heat'
        )
        found = engine['classes']['OS::Heat::SoftwareDeployment']
        assert found.startswith('heat_plugins.'), found

    def put(self, name, requires):
        """Add a package to the image."""
        folder = self.environment.site_packages / f'{name}-1.0.dist-info'
        folder.mkdir()
        (folder / 'METADATA').write_text(
            f'Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n'
            f'Requires-Dist: {requires}\n'
        )

    def test_an_image_may_lack_pip_and_have_a_broken_package(self):
        for path in self.environment.site_packages.glob('pip*'):
            path.unlink()
        self.put('broken', 'missing')
        self.assert_installs(LINES)

    def test_what_the_installation_breaks_is_one(self):
        self.put('fine', 'heat-plugins<0.1')
        done = self.run_in_image(LINES)
        assert done.returncode != 0

    def test_the_lines_of_the_containerfile_are_the_same(self):
        text = (
            environments.CHECKOUT / 'contrib/container/Containerfile'
        ).read_text()
        (lines,) = re.findall(r'RUN ((?:.*\\\n)*.*)', text)
        assert (
            lines.split()
            == LINES.replace('/additions/heat-plugins', '/tmp/heat-plugins')
            .replace('-r /additions', '-r /tmp/heat-plugins')
            .split()
        )
