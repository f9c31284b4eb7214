# SPDX-License-Identifier: Apache-2.0
"""What a server sends of hidden parameters is masked, and stored so."""

import json

from heat_plugins.engine import server_fleets
from tests.unit.resources import deployments

SECRET = 'hunter2 "quoted"'
PARAMETERS = {
    'password': {'type': 'string', 'hidden': True},
    'tokens': {'type': 'json', 'hidden': True, 'default': {'a': 'tok-en-1'}},
    'user': {'type': 'string', 'default': 'root-user'},
}
VALUES = {
    'plain': {'get_param': 'user'},
    'secret': {'get_param': 'password'},
    'url': {
        'str_replace': {
            'template': 'mysql://root-user:PW@db',
            'params': {'PW': {'get_param': 'password'}},
        }
    },
    'map': {'get_param': 'tokens'},
}


def traceback(config):
    """Answer as a hook that has crashed, with all that it was given."""
    given = deployments.inputs(config)
    return {
        'deploy_status_code': 0,
        'deploy_stdout': f'{given["url"]} {given["plain"]}',
        'deploy_stderr': f'Traceback: {json.dumps(given)} {given!r}',
        'answer': given['secret'],
    }


def template():
    whole = deployments.template(input_values=VALUES)
    return {**whole, 'parameters': PARAMETERS}


class HiddenTest(deployments.DeploymentTestCase):
    def outputs(self):
        (row,) = self.deployment_rows()
        return row.output_values

    def test_hidden_parameters_are_masked_in_what_is_stored(self):
        self.answer = traceback
        stack = self.created(template(), parameters={'password': SECRET})
        found = self.outputs()
        for name in ('deploy_stdout', 'deploy_stderr'):
            for secret in ('hunter2', 'tok-en-1'):
                assert secret not in found[name]
            assert 'root-user' in found[name]
        assert (
            found['deploy_stdout'] == 'mysql://root-user:******@db root-user'
        )
        assert 'temp_url_sig=***' in found['deploy_stderr']
        shown = stack['deployment'].FnGetAtt('deploy_stderr')
        assert shown == found['deploy_stderr']
        # Neither an output that the config declares nor what the server gets.
        assert found['answer'] == SECRET
        (config,) = self.handed
        assert deployments.inputs(config)['secret'] == SECRET
        assert 'hunter2' not in json.dumps(config['options'])

    def test_a_result_that_comes_by_a_signal_is_masked_too(self):
        whole = template()
        for one in whole['resources'].values():
            if 'signal_transport' in one.get('properties', {}):
                one['properties']['signal_transport'] = 'HEAT_SIGNAL'
        stack = self.heat.stack(whole, parameters={'password': SECRET})
        task = self.heat.begin(stack, 'CREATE')
        while not self.deployment_rows():
            self.step(task)
        again = self.heat.load(stack)
        again['deployment'].handle_signal({'deploy_stderr': f'got {SECRET}'})
        assert self.outputs()['deploy_stderr'] == 'got ******'

    def test_values_that_a_stack_hands_down_are_known_below_it(self):
        above = self.heat.stack(
            {'heat_template_version': '2021-04-16', 'parameters': PARAMETERS},
            name='above',
            parameters={'password': SECRET},
        )
        middle = self.heat.stack(
            {'heat_template_version': '2021-04-16'},
            name='middle',
            owner_id=above.id,
        )
        below = self.heat.stack(
            {
                'heat_template_version': '2021-04-16',
                'parameters': {
                    'own': {
                        'type': 'number',
                        'hidden': True,
                        'default': 123456,
                    },
                    'missing': {'type': 'string', 'hidden': True},
                },
            },
            name='below',
            owner_id=middle.id,
        )
        assert set(server_fleets.hidden_values(below)) == {
            SECRET,
            'tok-en-1',
            '123456',
        }
