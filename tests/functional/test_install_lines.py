# SPDX-License-Identifier: Apache-2.0
"""The ways in on the page "Installing": as far as they can be tried here."""

import configparser
import pathlib
import re
import subprocess
import textwrap

from jinja2 import sandbox
from oslo_config import cfg
import pytest
import yaml

from tests import pages
from tests.unit import environments

#: What heat-engine's template has at its end, in Kolla.
KOLLA = 'FROM base\n{% block heat_engine_footer %}{% endblock %}\nUSER heat\n'

_FILE = re.compile(r'code-block:: (jinja|ini|yaml)\n\n((?:(?: {3}.*)?\n)+)')

_RUN = re.compile(r'RUN ((?:.*\\\n)*.*)')


def text(way, language):
    """Return the text of the first file in a language that a way has."""
    return next(
        textwrap.dedent(text).strip('\n') + '\n'
        for each, text in _FILE.findall(pages.read('install', way))
        if each == language
    )


def kolla(parent):
    """Render a template of Kolla's with the override, as kolla-build does."""
    environment = sandbox.SandboxedEnvironment()
    return environment.from_string(text('Kolla-Ansible', 'jinja')).render(
        parent_template=environment.from_string(parent)
    )


#: What Kolla's override runs.
(LINES,) = _RUN.findall(kolla(KOLLA))


def test_kollas_image_of_heat_engine_alone_gets_the_wheel_from_its_folder():
    rendered = kolla(KOLLA)
    assert rendered.rstrip().endswith('USER heat')
    other = 'FROM base\n{% block horizon_footer %}{% endblock %}\n'
    assert 'heat' not in kolla(other)
    configured = configparser.ConfigParser()
    configured.read_string(text('Kolla-Ansible', 'ini'))
    (section,) = configured.sections()
    assert section == 'heat-engine-additions-heat-plugins'
    folder = pathlib.PurePath(configured[section]['location'])
    assert f'/additions/{folder.name}/*.whl' in rendered
    (typed,) = pages.blocks(pages.read('install', 'Kolla-Ansible'))
    assert f'cp heat_plugins-*.whl {folder}\n' in typed


def test_heat_engine_of_the_chart_reads_the_directory_last(tmp_path):
    values = yaml.safe_load(text('OpenStack-Helm', 'yaml'))
    ((source,), (made,)) = (
        values['pod']['etcSources']['heat_engine'],
        # A list would replace that of other values.
        values['extraObjects'].values(),
    )
    assert made['metadata']['name'] == source['configMap']['name']
    main, more = tmp_path / 'heat.conf', tmp_path / 'heat.conf.d'
    main.write_text('[DEFAULT]\nplugin_dirs = /a\n')
    more.mkdir()
    for name, content in made['data'].items():
        (more / name).write_text(content)
    conf = cfg.ConfigOpts()
    conf.register_opt(cfg.ListOpt('plugin_dirs'))
    conf(['--config-file', str(main), '--config-dir', str(more)])
    assert conf.plugin_dirs[-1] == '/var/lib/openstack/lib/heat'
    # Heat's own directories.
    assert len(conf.plugin_dirs) == 5


@pytest.fixture
def image(tmp_path):
    """The environment of an image."""
    found = environments.Environment(tmp_path / 'image')
    yield found
    found.close()


def run(image, folder):
    """Run what the override does to an image; return the ended process."""
    copied = folder / 'additions/heat-plugins'
    copied.mkdir(parents=True)
    (folder / 'tmp').mkdir()
    wheel = environments.wheel()
    (copied / wheel.name).symlink_to(wheel)
    script = LINES
    for path in ('/tmp/', '/additions'):
        script = script.replace(path, f'{folder}{path}')
    path = f'{image.prefix}/bin:/usr/bin:/bin'
    return subprocess.run(
        ['bash', '-euo', 'pipefail', '-c', script],
        cwd=folder,
        env={'PATH': path, 'PIP_NO_INDEX': '1'},
        capture_output=True,
        text=True,
    )


def put(image, name, requires):
    """Add a package to an image."""
    folder = image.site_packages / f'{name}-1.0.dist-info'
    folder.mkdir()
    (folder / 'METADATA').write_text(
        f'Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n'
        f'Requires-Dist: {requires}\n'
    )


def test_an_image_may_lack_pip_and_have_a_broken_package(image, tmp_path):
    for path in image.site_packages.glob('pip*'):
        path.unlink()
    put(image, 'broken', 'missing')
    done = run(image, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    engine = image.start_engine(f'plugin_dirs = {image.prefix}/lib/heat')
    found = engine['classes']['OS::Heat::SoftwareDeployment']
    assert found.startswith('heat_plugins.'), found


def test_what_the_installation_breaks_is_one(image, tmp_path):
    put(image, 'fine', 'heat-plugins<0.1')
    assert run(image, tmp_path).returncode != 0


def test_the_lines_of_the_containerfile_are_the_same():
    place = environments.CHECKOUT / 'contrib/container/Containerfile'
    (lines,) = _RUN.findall(place.read_text())
    expected = LINES.replace('/additions/heat-plugins', '/tmp/heat-plugins')
    expected = expected.replace('-r /additions', '-r /tmp/heat-plugins')
    assert lines.split() == expected.split()
