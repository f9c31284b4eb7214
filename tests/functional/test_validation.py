# SPDX-License-Identifier: Apache-2.0
"""Templates that cannot work are refused before anything is made."""

import json

import pytest

from tests.functional import base


def _config(**properties):
    template = base.software()
    template['resources']['config']['properties'].update(properties)
    return template


def _component(*configs):
    config = {
        'type': 'OS::Heat::SoftwareComponent',
        'properties': {
            'configs': [
                {'tool': 'script', 'config': '#!/bin/sh\n', 'actions': each}
                for each in configs
            ],
        },
    }
    return base.software(config=config)


@pytest.mark.parametrize(
    ('template', 'words'),
    [
        pytest.param(
            _config(inputs=[{'name': 'who'}, {'name': 'who'}]),
            ['input', '"who"', 'inputs[0], inputs[1]'],
            id='two inputs of a name',
        ),
        pytest.param(
            _config(outputs=[{'name': 'greeting'}, {'name': 'greeting'}]),
            ['output', '"greeting"', 'outputs[0], outputs[1]'],
            id='two outputs of a name',
        ),
        pytest.param(
            _config(inputs=[{'name': 'who'}, {'name': 'deploy_signal_id'}]),
            ['"deploy_signal_id"', 'inputs[1]'],
            id='an input of ours',
        ),
        pytest.param(
            _component(['CREATE', 'BACKUP'], ['BACKUP']),
            ['"BACKUP"', 'configs[0]', 'configs[1]'],
            id='two configs for an action',
        ),
        pytest.param(
            _component(['CREATE'], ['']),
            ['action "" is blank', 'configs[1]'],
            id='an empty action',
        ),
        pytest.param(
            _component(['CREATE'], []),
            ['configs[1].actions', 'length (0)'],
            id='no action',
        ),
        pytest.param(
            base.software(signal_transport='PIGEON_SIGNAL'),
            ['signal_transport', 'PIGEON_SIGNAL', 'TEMP_URL_POLL', 'AUTO'],
            id='an unknown transport',
        ),
        pytest.param(
            base.software(timeout=0),
            ['timeout', '0 is out of range', 'min: 1'],
            id='no time at all',
        ),
        pytest.param(
            base.software(timeout='soon'),
            ['timeout', "'soon'", 'integer'],
            id='a time that is none',
        ),
        pytest.param(
            base.software(actions=['CREATE', 'BACKUP']),
            ['actions', 'BACKUP'],
            id='an action that is none of a life',
        ),
    ],
)
def test_template_is_refused_with_a_word_on(cloud, stacks, template, words):
    answer = cloud.session().post(
        'orchestration',
        '/stacks',
        {'stack_name': 'refused', 'template': template},
    )
    assert answer.status == 400, answer
    message = answer.json()['error']['message']
    for word in words:
        assert word in message


def test_openstack_command_shows_why(cloud, tmp_path):
    # JSON is YAML.
    file = tmp_path / 'template.yaml'
    file.write_text(json.dumps(base.software(timeout=0)))
    with pytest.raises(base.minicloud_client.CommandError) as caught:
        cloud.openstack('stack', 'create', '-t', str(file), 'refused')
    assert '0 is out of range' in caught.value.stderr
