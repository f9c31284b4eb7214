# SPDX-License-Identifier: Apache-2.0
"""``openstack software deployment apply``."""

import fixtures

from tests.unit.osc import base


class ApplyTest(base.CommandTestCase):
    def setUp(self):
        super().setUp()
        self.heat.add_resource(
            self.stack, 'server', 'OS::Heat::DeployedServer', 'server-1'
        )
        self.path = self.useFixture(fixtures.TempDir()).join('fix.sh')
        with open(self.path, 'w', encoding='utf-8') as file:
            file.write('#!/bin/sh\n')

    def apply(self, line):
        return self.json(f'apply shop server {line}')

    def test_a_script_runs_on_a_server_of_the_stack(self):
        self.soon(lambda: self.answer(size='3') and None)
        before = dict(self.heat.configs)
        code, shown = self.apply(
            f'--config-file {self.path} --output size --input who=me --wait'
        )
        self.assertEqual((0, 'complete'), (code, shown['state']))
        self.assertEqual('3', shown['outputs']['size'])
        self.assertEqual(before, self.heat.configs)

    def test_the_server_is_given_what_it_needs_to_signal(self):
        self.apply(f'--config-file {self.path} --input who=me')
        (config,) = self.heat.given()
        self.assertEqual(
            ('server-APPLY', 'script', '#!/bin/sh\n'),
            (config.name, config.group, config.config),
        )
        self.assertEqual('me', self.inputs()['who'])
        self.assertEqual('PUT', self.inputs()['deploy_signal_verb'])

    def test_it_is_a_run_like_others(self):
        _, shown = self.apply(f'--config-file {self.path}')
        _, (found,) = self.json('run list shop')
        self.assertEqual(
            (shown['id'], 'waiting'), (found['id'], found['state'])
        )
        self.json(f'run cancel shop {shown["id"]}')
        self.assertEqual([], self.heat.given())
        self.refused(f'run rerun shop {shown["id"]}')

    def test_a_config_of_heats_with_its_inputs(self):
        config = self.heat.add_config(name='own')
        self.apply(f'--config {config.id} --action BACKUP --input password=x')
        self.assertEqual('x', self.inputs()['password'])
        self.assertEqual('shop', self.inputs()['database'])

    def test_what_cannot_be_applied_is_refused(self):
        config = self.heat.add_config(name='own')
        for line in (
            f'server --config {config.id} --action NOPE',
            f'server --config {config.id} --action BACKUP',
            'server --config none',
            'server --config-file /nowhere',
            f'nothing --config {config.id}',
        ):
            self.refused(f'apply shop {line}')
        self.assertEqual([], self.heat.given())

    def test_what_is_no_server_is_refused_before_anything_is_made(self):
        self.heat.add_resource(
            self.stack, 'net', 'OS::Neutron::Net', 'network-1'
        )
        nested = self.heat.add_stack('shop-tier', self.stack.id)
        self.heat.add_resource(
            self.stack, 'tier', 'tier.yaml', nested.id, nested.id
        )
        self.heat.add_resource(nested, 'box', 'OS::Nova::Server', 'server-2')
        for name, kind in (
            ('net', 'OS::Neutron::Net'),
            ('tier', 'tier.yaml'),
            ('db', 'OS::Heat::SoftwareDeployment'),
        ):
            self.assertEqual(
                f'Resource {name} of stack shop is not a server: its type '
                f'is {kind}. Its servers: server, tier.box',
                self.refused(f'apply shop {name} --config-file {self.path}'),
            )
        self.assertEqual([], self.heat.given())

    def test_a_server_of_a_type_of_the_stacks_environment_is_one(self):
        self.heat.add_resource(self.stack, 'own', 'My::Server', 'server-3')
        self.heat.attributes['own', 'os_collect_config'] = {}
        _, shown = self.json(f'apply shop own --config-file {self.path}')
        self.assertEqual(
            ('own', 'waiting'), (shown['resource'], shown['state'])
        )
