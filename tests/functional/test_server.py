# SPDX-License-Identifier: Apache-2.0
"""A server that boots: a virtual machine with Heat's own user data.

Without KVM a machine is emulated, so that each step takes some ten times as
long as on a server. Hence one machine does most of it.
"""

from collections.abc import Callable, Iterator
import json
import time
from typing import Any

import pytest

from tests.functional import base

pytestmark = [pytest.mark.server, pytest.mark.timeout(1800)]

Template = base.Template

#: Seconds for what a server does at once: emulated, on a busy machine.
SOON = 300


@pytest.fixture(scope='module', autouse=True)
def image(cloud: base.minicloud_client.Cloud) -> None:
    """There is the image of servers, or what it takes cannot be had."""
    result = cloud.minicloud('server', 'build', check=False)
    if result.returncode == 4:
        pytest.skip(result.stderr.strip())
    assert result.returncode == 0, result.stderr


def template(collector: str, **properties: Any) -> Template:
    """Return a template whose deployment has the action BACKUP.

    :param collector: how the server gets its metadata.
    """
    config = {
        'type': 'OS::Heat::SoftwareComponent',
        'properties': {
            'inputs': [{'name': 'who'}],
            'outputs': [{'name': 'greeting'}],
            'configs': [
                {'actions': actions, 'tool': 'script', 'config': script}
                for actions, script in (
                    (['CREATE', 'UPDATE'], base.SCRIPT),
                    (['BACKUP'], '#!/bin/sh\necho saved\n'),
                )
            ],
        },
    }
    return base.software(
        config=config,
        server={
            'software_config_transport': collector,
            'deployment_swift_data': {
                'container': 'machines',
                'object': 'metadata',
            },
        },
        **properties,
    )


class Machine:
    """A virtual machine that is the server of a stack."""

    def __init__(
        self,
        cloud: base.minicloud_client.Cloud,
        stacks: Callable[..., base.Stack],
        collector: str,
        **options: Any,
    ) -> None:
        self.cloud = cloud
        self._template = template(collector, signal_transport='AUTO')
        self.stack = stacks(self._template, timeout_mins=30)
        self.server = cloud.server(
            self.stack.name, self.stack.name, 'server', **options
        )

    def update(self, who: str) -> None:
        self.stack.update(self._template, timeout_mins=30, who=who)
        self.stack.wait('UPDATE_COMPLETE', SOON)

    def run(self) -> Template:
        """Return the newest run of an action."""
        shown = self.stack.resource('deployment', 'runs')
        found = shown['attributes']['runs']
        return dict(found[0]) if found else {'state': 'none', 'id': None}

    def trigger(self, action: str) -> None:
        """Start an action; it is the newest run then."""
        before = self.run()['id']
        self.stack.signal('deployment', {'trigger': action})
        base.until(lambda: self.run()['id'] != before)

    def ends(self, state: str, seconds: float = SOON) -> Template:
        """Wait until the newest run ends so."""

        def ended() -> Template | None:
            found = self.run()
            if found['state'] in ('waiting', 'running'):
                return None
            return found

        found: Template = base.until(ended, seconds)
        assert found['state'] == state, found
        return found

    def backs_up(self) -> None:
        """Hold that the server runs what it is given."""
        self.trigger('BACKUP')
        found = self.ends('complete')
        assert found['outputs']['deploy_stdout'] == 'saved\n'

    def does(self, command: str) -> bool:
        """Say whether a command succeeds on the server."""
        return self.server.run(command, SOON).code == 0


@pytest.fixture(scope='module')
def machine(
    cloud: base.minicloud_client.Cloud,
    module_stacks: Callable[..., base.Stack],
) -> Iterator[Machine]:
    """A server of a stack that is complete."""
    demo = cloud.session()
    assert demo.put('object-store', '/machines').ok
    found = Machine(cloud, module_stacks, 'POLL_TEMP_URL')
    begun = time.monotonic()
    with found.server:
        found.stack.wait('CREATE_COMPLETE', 2 * SOON)
        print(f'From power-on to outputs: {time.monotonic() - begun:.0f} s')
        yield found
    # Heat's own server leaves what held its metadata behind.
    found.stack.purge()
    demo.delete('object-store', '/machines/metadata')
    demo.delete('object-store', '/machines')


def test_it_runs_what_its_user_data_leads_it_to(machine: Machine) -> None:
    assert machine.stack.outputs['deployment_greeting'] == 'hello world'
    data = 'cat /var/lib/heat-cfntools/cfn-init-data'
    assert '"metadata_url"' in machine.server.run(data).stdout
    machine.update('moon')
    assert machine.stack.outputs['deployment_greeting'] == 'hello moon'
    machine.backs_up()


def test_it_reaches_nothing_but_the_services(machine: Machine) -> None:
    settings = machine.cloud.path / 'instance.json'
    ports = json.loads(settings.read_text())['ports']
    ask = 'curl -sS -m 10 -o /dev/null http://127.0.0.1:{}/'.format
    assert machine.does(ask(ports['heat']))
    assert not machine.does(ask(ports['mistral']))
    assert not machine.does('curl -sS -m 5 http://10.0.2.2/')


def test_a_wrong_clock_of_a_server_does_no_harm_to_tempurls(
    machine: Machine,
) -> None:
    assert machine.does('date -s "+1 hour"')
    machine.backs_up()
    assert machine.does('hwclock --hctosys')
    machine.backs_up()
