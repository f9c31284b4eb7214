# SPDX-License-Identifier: Apache-2.0
"""What configs offer, and what is found wrong with them."""

import copy

from heat.engine.resources.openstack.heat import software_component
from heat.engine.resources.openstack.heat import software_config
from heat.engine.resources.openstack.heat import software_deployment
import pytest

from heat_plugins.configs import actions
from heat_plugins.configs import config_checking

SH = '#!/bin/sh\n'
UNKNOWN = config_checking.UNKNOWN


def component(*entries):
    """Return a component's config; an entry may be a list of actions."""
    script = {'tool': 'script', 'config': SH}
    found = [
        e if isinstance(e, dict) else {**script, 'actions': e} for e in entries
    ]
    return {'configs': found}


def test_a_component_offers_each_action_of_its_entries_once():
    for entries, offered in (
        ([['CREATE', 'UPDATE'], ['BACKUP']], ('CREATE', 'UPDATE', 'BACKUP')),
        ([['CREATE', 'CREATE'], ['CREATE', 'BACKUP']], ('CREATE', 'BACKUP')),
        # Heat's default.
        ([{'tool': 'script'}], ('CREATE', 'UPDATE')),
        ([{'tool': 'script', 'actions': None}], ('CREATE', 'UPDATE')),
    ):
        assert actions.actions('component', component(*entries)) == offered
    # A config that is no component offers none, and serves all.
    assert actions.actions('script', SH) == ()
    assert actions.actions(None, component(['CREATE'])) == ()
    assert actions.serves('script', SH, 'BACKUP')
    # The first entry with the action is the one that runs.
    config = component(['CREATE'], ['BACKUP'], ['BACKUP', 'DELETE'])
    assert actions.entry(config, 'BACKUP') is config['configs'][1]
    assert actions.entry(config, 'DELETE') is config['configs'][2]
    assert actions.entry(config, 'UPDATE') is None


def test_what_is_no_component_at_all_offers_nothing():
    entries = ([None, 'x', 3], [{'actions': 'CREATE'}])
    entries += ([{'actions': [None, {}]}], None, 'CREATE', UNKNOWN)
    found = [{'configs': each} for each in entries]
    for config in (*found, None, '', [], {}, UNKNOWN):
        assert actions.actions('component', config) == ()
        assert actions.entry(config, 'CREATE') is None


def test_a_server_gets_a_text_where_the_template_had_no_config():
    config = component(
        {'actions': ['CREATE'], 'tool': 'puppet', 'config': None},
        {'actions': ['DELETE'], 'tool': 'puppet'},
        ['BACKUP'],
    )
    handed = actions.for_server('component', config)
    assert [e['config'] for e in handed['configs']] == ['', '', SH]
    assert config['configs'][0]['config'] is None
    # Any other one it gets as it is.
    for group, other in (
        ('script', SH),
        ('script', None),
        ('hiera', {'configs': [{'config': None}]}),
        ('component', component(['CREATE'])),
        ('component', None),
    ):
        assert actions.for_server(group, other) is other


def names(*names):
    return [{'name': name, 'type': 'String'} for name in names]


def found(*entries, group='component', config=SH, inputs=None, outputs=None):
    findings = config_checking.check(
        group=group,
        config=component(*entries) if entries else config,
        inputs=inputs,
        outputs=outputs,
    )
    return [
        *(f'error {text}' for text in findings.errors),
        *(f'warning {text}' for text in findings.warnings),
    ]


@pytest.mark.parametrize(
    ('entries', 'place', 'said'),
    [
        (
            [['CREATE', 'BACKUP'], ['DELETE'], ['BACKUP']],
            'error configs[2].actions',
            ['"BACKUP"', 'configs[0]', 'only runs the first'],
        ),
        *(
            ([['CREATE', blank]], 'error configs[0].actions', ['blank'])
            for blank in ('', ' ', None)
        ),
        ([['CREATE'], []], 'error configs[1].actions', ['is empty']),
        (
            [['BACKUP'], ['DELETE']],
            'warning configs',
            ['BACKUP, DELETE', 'without running anything'],
        ),
        *(
            ([['CREATE', like]], 'warning configs[0].actions', [f'"{like}"'])
            for like in ('delete', 'Delete', 'DELETE ')
        ),
        # What is not there yet is never held against a config.
        ([['BACKUP'], ['DELETE', UNKNOWN]], '', []),
        ([['BACKUP'], UNKNOWN], '', []),
        ([{'actions': UNKNOWN}, {'actions': UNKNOWN}], '', []),
    ],
)
def test_mistakes_in_the_actions_of_a_component(entries, place, said):
    listed = found(*entries)
    places = [text.partition(': ')[0] for text in listed]
    assert places == [place] * bool(place)
    for each in said:
        assert each in listed[0]


@pytest.mark.parametrize(
    ('sections', 'place', 'said'),
    [
        (
            {'inputs': names('a', 'b', 'a')},
            'error inputs[2]',
            ['"a"', 'inputs[0], inputs[2]', 'uses the last'],
        ),
        ({'inputs': names('a', UNKNOWN, 'a')}, 'error inputs[2]', ['"a"']),
        # Heat makes texts of names.
        ({'outputs': names(5, '5')}, 'error outputs[1]', ['"5"']),
        ({'inputs': names('deploy_action')}, 'error inputs[0]', ['rename']),
        ({'outputs': names('deploy_stdout')}, 'warning outputs[0]', []),
        *(
            ({'group': group}, 'warning group', [f'"{group}"', 'id you mean'])
            for group in ('Script', 'scirpt', 'ansibel', 'docker_cmd')
        ),
    ],
)
def test_mistakes_of_a_config(sections, place, said):
    (text,) = found(**{'group': 'script', **sections})
    assert text.partition(': ')[0] == place
    for each in said:
        assert each in text


def test_nothing_is_said_about_a_good_config():
    assert not found(
        ['CREATE', 'UPDATE'],
        ['DELETE', 'SUSPEND', 'RESUME'],
        ['BACKUP', 'back up', 'Restore'],
        inputs=names('who'),
        outputs=names('greeting'),
    )
    # A hook of one's own, and what is not there yet, are no mistakes.
    for group in ('terraform', None, '', 'Heat::Ungrouped', UNKNOWN):
        assert not found(group=group, inputs=UNKNOWN, outputs=UNKNOWN)
    for config in (UNKNOWN, {'configs': UNKNOWN}):
        assert not found(config=config)


def test_what_is_written_down_of_heat_is_what_heat_has():
    deployment = software_deployment.SoftwareDeployment
    inputs = {*deployment.DERIVED_CONFIG_INPUTS}
    assert inputs == config_checking.RESERVED_INPUTS
    assert {*actions.LIFECYCLE} == {*deployment.ALLOWED_DEPLOY_ACTIONS}
    assert {*deployment.ATTRIBUTES} == config_checking.BUILT_IN_OUTPUTS
    entry = software_component.SoftwareComponent.config_schema.schema
    assert entry['actions'].default == [*actions.DEFAULT]
    group = software_config.SoftwareConfig.properties_schema['group']
    assert group.default == config_checking.UNGROUPED


# The form in which configs reach the agents

COMPONENT = component(
    ['CREATE'],
    {'actions': ['BACKUP', 'CREATE'], 'tool': 'ansible'},
    {'actions': ['DELETE']},
)


def test_a_config_runs_with_a_hook():
    hook = actions.hook_for
    assert hook('puppet', 'code', 'CREATE') == 'puppet'
    # A component runs with the tool of the action.
    assert hook('component', COMPONENT, 'CREATE') == 'script'
    assert hook('component', COMPONENT, 'BACKUP') == 'ansible'
    # Nothing would run.
    for action in ('DELETE', 'UPDATE'):
        assert hook('component', COMPONENT, action) is None
    for group, config in (
        (None, 'code'),
        ('component', None),
        ('component', 'text'),
    ):
        assert hook(group, config, 'CREATE') is None


TEXT = {'name': 'x', 'type': 'String'}
NUMBER = {'name': 'x', 'type': 'Number', 'default': 7}
JSON = {'name': 'x', 'type': 'Json'}

NUMBERS = [{**NUMBER, 'value': value} for value in (5, 0, -1.5, True, False)]
VALUES = ('', ' a\n', {'a': None}, {}, [1, None], [])


@pytest.mark.parametrize(
    ('given', 'hooks', 'handed'),
    [
        (TEXT, ('script', 'ansible', None), {**TEXT, 'value': ''}),
        ({**TEXT, 'value': None}, ('script', None), {**TEXT, 'value': ''}),
        # A script gets numbers and booleans as text.
        *(
            (each, ('script',), {**TEXT, 'value': str(each['value'])})
            for each in NUMBERS
        ),
        *((each, ('ansible', 'puppet', None), each) for each in NUMBERS),
        *(
            ({**JSON, 'value': value}, ('script', 'ansible'), None)
            for value in VALUES
        ),
    ],
)
def test_an_input_reaches_a_hook_as_that_can_use_it(given, hooks, handed):
    for hook in hooks:
        (found,) = actions.agent_inputs([given], hook)
        assert found == (handed or given)
        assert type(found['value']) is type((handed or given)['value'])


def test_inputs_keep_their_order_and_what_else_they_say():
    declared = [{'name': n, 'about': n, 'value': None} for n in 'ba']
    before = copy.deepcopy(declared)
    found = actions.agent_inputs(declared, 'script')
    assert [each['about'] for each in found] == ['b', 'a']
    assert declared == before
