# SPDX-License-Identifier: Apache-2.0
"""What the former release has stored goes on under this one."""

import pathlib
import subprocess
import sys
import sysconfig

import pytest

from tests.functional import base
from tests.functional import conftest
from tests.functional import flows
from tests.functional import running

from minicloud_lib import files  # isort: skip
from minicloud_lib import venv  # isort: skip

pytestmark = pytest.mark.long

#: The last commit of release 0.1.
FORMER = 'bf17343dff3f758a8dbf11840f169735a5d3ab77'

_GROUPS = {'nested': {}, 'single': {'members': 'single'}}

_COMPONENT = running.component(
    {'CREATE UPDATE BACKUP': base.SCRIPT}, {'who': ''}, ('greeting',)
)


class Cloud(base.minicloud_client.Cloud):
    """A cloud with an environment of its own, over that of the tests.

    A release is installed into it as an operator does it.
    """

    def __init__(self, home):
        super().__init__('release', home)
        tests = pathlib.Path(sys.prefix)
        self.python = home / 'venv/bin/python'
        subprocess.run(
            [sys.executable, '-m', 'venv', '--without-pip', home / 'venv'],
            check=True,
        )
        for file in (tests / 'bin').iterdir():
            own = home / 'venv/bin' / file.name
            if not own.exists() and not own.is_symlink():
                own.symlink_to(file)
        # Configuration files of the services.
        for folder in ('etc', 'share'):
            if (tests / folder).is_dir():
                (home / 'venv' / folder).symlink_to(tests / folder)
        packages = sysconfig.get_path(
            'purelib', vars={'base': str(home / 'venv')}
        )
        # After what is installed here.
        (pathlib.Path(packages) / 'zz_tests.pth').write_text(
            f'import site; site.addsitedir({sysconfig.get_path("purelib")!r})'
        )
        # It has what the mini cloud needs, from the tests' environment.
        files.write_json(home / 'venv/minicloud.json', venv._wanted())
        (home / 'heat-agents').symlink_to(tests.parent / 'heat-agents')

    def release(self):
        """Return the version of heat-plugins that is installed."""
        script = 'from importlib import metadata as m; print(m.version({!r}))'
        return subprocess.run(
            [self.python, '-c', script.format('heat-plugins')],
            cwd=self.path.parent,
            capture_output=True,
            text=True,
            check=True,
        ).stdout


@pytest.fixture
def former(tmp_path):
    """The source tree of the former release."""
    tree = tmp_path / 'former'
    script = (
        'git clone --quiet --no-checkout "$1" "$2" && '
        'git -C "$2" checkout --quiet "$3"'
    )
    command = ['sh', '-c', script, 'sh', base.ROOT, tree, FORMER]
    done = subprocess.run(command, capture_output=True, text=True)
    assert not done.returncode, f'{done.stderr}; try git fetch --unshallow'
    return tree


@pytest.fixture
def cloud(tmp_path, former):
    """A cloud with the former release, and what upgrades it."""
    conf = tmp_path / 'heat.conf'
    conf.write_text(conftest.ALONE)
    found = Cloud(tmp_path / 'home')

    def install(source, version):
        found.up(plugin=source, conf=[conf])
        assert found.release().startswith(version)

    install(former, '0.1')
    try:
        yield found, lambda: install(base.ROOT, '0.2')
    finally:
        found.down(purge=True)


def _shop():
    """Return a template with all that a stack stores beyond Heat's own."""
    template = base.software(config=_COMPONENT)
    # The former release gives a group a nested stack unless it is told.
    for name, options in _GROUPS.items():
        group = base.group(2, **options)
        template['resources'][name] = group['resources']['group']
    template['resources'] |= flows.scheduled(1)['resources']
    return template


def _waiting():
    """Return a template with a deployment, and a nested group of two."""
    template = base.software()
    group = base.group(2, signal_transport='TEMP_URL_POLL')
    template['resources']['group'] = group['resources']['group']
    return template


def _handed(stack):
    """Wait until the server has all configs of that template, by ID."""
    found = base.until(lambda: len(found := stack.metadata()) == 3 and found)
    return {config['id']: config for config in found}


def _answer(stack, action, greeting):
    """Answer in the server's place what it was given last."""

    def given():
        # No server answers for the members of the groups.
        return [
            config
            for config in stack.metadata()
            if base.value(config, 'deploy_action') == action
            and 'deploy_signal_id' in [one['name'] for one in config['inputs']]
        ]

    base.answer(base.until(given)[-1], greeting=greeting)


@pytest.mark.skipif(
    conftest.PROFILE != 'small', reason='others have no environment of theirs'
)
def test_what_the_former_release_stored_goes_on(cloud):
    found, upgrade = cloud
    session = found.session()
    before = base.Leftovers.of(found)

    # By the former release.
    shop = base.Stack(session, _shop(), name='shop')
    _answer(shop, 'CREATE', 'of 0.1')
    shop.wait('CREATE_COMPLETE')
    waiting = base.Stack(session, _waiting(), name='waiting')
    former = _handed(waiting)
    members = {name: shop.resource(name) for name in _GROUPS}

    upgrade()

    # What the former engine waited for is waited for on, and runs once.
    handed = _handed(waiting)
    assert handed.keys() == former.keys()
    for config in handed.values():
        base.answer(config, greeting='late')
    waiting.wait('CREATE_COMPLETE')
    assert waiting.outputs['deployment_greeting'] == 'late'
    assert _handed(waiting).keys() == former.keys()
    # So do runs, of what it has stored.
    user = running.client(found)
    run = user.start('BACKUP', stacks=['shop'], resources=['deployment'])
    _answer(shop, 'BACKUP', 'backed up')
    assert user.wait(run.id, 60).state == 'complete'
    user.delete(run.id)
    # Groups keep their kind.
    shop.update(_shop(), who='moon')
    _answer(shop, 'UPDATE', 'of 0.2')
    shop.wait('UPDATE_COMPLETE')
    assert shop.outputs['deployment_greeting'] == 'of 0.2'
    for name, resource in members.items():
        kept = shop.resource(name)['physical_resource_id']
        assert kept == resource['physical_resource_id']
    base.purge([shop, waiting])
    before.hold(found)
