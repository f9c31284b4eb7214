# SPDX-License-Identifier: Apache-2.0
"""The chart of a stack's life, from a real Heat, Mistral and object store."""

import contextlib
import json
from xml.etree import ElementTree as etree

from tests.functional import base
from tests.functional import running
from tests.functional import servers

_COMPONENT = running.component(
    {'CREATE': '#!/bin/sh\nsleep 1\n', 'BREAK': '#!/bin/sh\nexit 3\n'}, {}
)

_MORE = {
    'flow': {
        'type': 'OS::Mistral::Workflow',
        'properties': {
            'definition': 'greet: {tasks: {do: {action: std.noop}}}'
        },
    },
    'greeted': {
        'type': 'OS::Mistral::Execution',
        'properties': {'workflow': {'get_resource': 'flow'}},
    },
}

_SVG = '{http://www.w3.org/2000/svg}'


def test_a_timeline_shows_deployments_runs_and_executions(
    cloud, stacks, tmp_path
):
    template = base.software(config=_COMPONENT, input_values={})
    template['resources'] |= _MORE
    group = base.group(1, signal_transport='TEMP_URL_POLL', input_values={})
    template['resources']['group'] = group['resources']['group']
    template['outputs'] = {}
    stack = stacks(template)

    def timeline(*options):
        command = ('software', 'deployment', 'timeline', stack.name)
        return cloud.openstack(*command, *options)

    def listed(*options):
        return {
            (one['Kind'], one['Resource'], one['What'], one['State'])
            for one in json.loads(timeline(*options, '-f', 'json'))
        }

    stack.waiting()
    begun = listed()
    assert ('deployment', 'deployment', 'CREATE', 'waiting') in begun
    assert ('stack', '', 'CREATE', 'running') in begun

    with servers.agent(cloud, stack):
        stack.wait('CREATE_COMPLETE')
        stack.signal('group', {'trigger': 'BREAK'})
        workflow = f'{stack.name}.flow.greet'
        folded = {
            ('stack', '', 'CREATE', 'complete'),
            ('deployment', 'deployment', 'CREATE', 'complete'),
            ('deployment', 'group', 'CREATE', 'complete'),
            ('run', 'group', 'BREAK', 'failed'),
            ('workflow execution', 'greeted', 'CREATE', 'complete'),
            ('workflow execution', 'flow', workflow, 'complete'),
        }
        with contextlib.suppress(AssertionError):
            base.until(lambda: listed() == folded, 120)
        assert listed() == folded

    unfolded = listed('--unfold')
    assert ('run', 'group.member0', 'BREAK', 'failed') in unfolded
    assert ('deployment', 'group.member0', 'CREATE', 'complete') in unfolded

    drawing = tmp_path / 'life.svg'
    assert timeline('--output', str(drawing)) == ''
    root = etree.parse(drawing).getroot()
    rows = root.findall(f"{_SVG}g[@role='listitem']")
    assert len(rows) == len(folded)

    shown = timeline('--all-resources')
    assert 'server ' in shown
    assert 'BREAK failed: the exit status' in shown
