# SPDX-License-Identifier: Apache-2.0
"""What another project creates is neither given to servers nor counted."""

import contextlib
import pathlib
import re

from heat.common import exception
from heat.db import api as db_api
from heat.engine import service_software_config
from heat.objects import software_deployment as deployment_objects
from oslo_config import cfg
import sqlalchemy

from heat_plugins.engine import heat_types
from heat_plugins.engine import patches
from heat_plugins.engine.database import rows
from heat_plugins.engine.database import tenancy
from heat_plugins.engine.runs import door
from tests.unit.resources import deployments

STRANGER = 'f' * 32

SECOND = deployments.template(
    config={'config': 'second'}, signal_transport='NO_SIGNAL'
)

PAGE = pathlib.Path(__file__).parents[3] / 'doc/source/threat-model.rst'


class TenancyTest(deployments.DeploymentTestCase):
    def setUp(self):
        super().setUp()
        for patch in patches.PATCHES:
            if patch.wrap.__module__ in (tenancy.__name__, door.__name__):
                owner, heats = patch.probe()
                name = patch.function.rpartition('.')[2]
                self.patch(owner, name, patch.wrap(heats))
        self.stack = self.created(
            deployments.template(signal_transport='NO_SIGNAL')
        )
        (self.own,) = self.deployment_rows()
        self.context = self.heat.context
        self.stranger = heat_types.in_project(self.context, STRANGER)
        self.admin = heat_types.in_project(
            self.context, 'a' * 32, is_admin=True, roles=['admin']
        )

    def foreign(self, **values):
        """Store what a stranger has created before this was refused."""
        made = self.heat.rpc.create_software_config(
            self.stranger, group='script', name='evil', config='evil'
        )
        values['id'] = f'{len(self.deployment_rows())}-foreign'
        values |= {'tenant': STRANGER, 'server_id': self.own.server_id}
        values |= {'config_id': made['id'], 'status': 'COMPLETE'}
        deployment_objects.SoftwareDeployment.create(
            self.stranger, {'action': 'CREATE', **values}
        )

    def scripts(self):
        given = self.in_metadata(self.heat.load(self.stack))
        return [each['config'] for each in given]

    def by_api(self, context, **values):
        config = self.heat.rpc.create_software_config(
            context, group='script', name='more', config='more'
        )
        return self.heat.rpc.create_software_deployment(
            context, self.own.server_id, config_id=config['id'], **values
        )

    def test_no_push_gives_a_server_anything_of_another_project(self):
        self.foreign(stack_user_project_id=self.context.project_id)
        self.update(self.stack, SECOND)
        assert self.scripts() == ['second']
        self.by_api(self.context)
        assert self.scripts() == ['more', 'second']
        # Heat's own filters nothing for an administrator.
        self.foreign()
        service_software_config.SoftwareConfigService()._push_metadata_software_deployments(
            self.admin, self.own.server_id, None
        )
        assert self.scripts() == ['more', 'second']

    def test_a_server_asks_heat_and_gets_its_own_alone(self):
        users = {'stack_user_project_id': self.stack.stack_user_project_id}
        self.foreign(stack_user_project_id=self.context.project_id)
        self.foreign(**users)
        server_user = heat_types.in_project(self.context, *users.values())
        rows.change(self.context, self.own.id, **users)
        for context in (self.context, server_user, self.admin):
            found = self.heat.rpc.metadata_software_deployments(
                context, self.own.server_id
            )
            assert [each['id'] for each in found] == [self.own.config_id]

    def test_an_administrator_sees_all_and_others_their_own(self):
        self.foreign(stack_user_project_id=self.context.project_id)
        for context, expected in (
            (self.context, {self.own.id}),
            (self.stranger, {'1-foreign'}),
            (self.admin, {self.own.id, '1-foreign'}),
        ):
            listed = self.heat.rpc.list_software_deployments(context)
            assert {each['id'] for each in listed} == expected
            read = set()
            kind = deployment_objects.SoftwareDeployment
            for number in (self.own.id, '1-foreign'):
                with contextlib.suppress(exception.NotFound):
                    read.add(kind.get_by_id(context, number).id)
            assert read == expected

    def test_what_a_stranger_has_uses_up_no_limit(self):
        cfg.CONF.set_override('max_software_deployments_per_tenant', 2)
        for _time in range(3):
            self.foreign(stack_user_project_id=self.context.project_id)
        self.by_api(self.context)
        call = self.by_api, self.context
        failure = self.assertRaises(exception.RequestLimitExceeded, *call)
        assert 'maximum' in str(failure)
        # An administrator's limit is one for all projects.
        found = db_api.software_deployment_count_all(self.admin)
        assert found == len(self.deployment_rows()) == 5

    def test_no_deployment_names_the_users_of_another_project(self):
        own, users = self.context.project_id, self.stack.stack_user_project_id
        create = self.by_api, self.stranger
        for named in (own, users):
            values = {'stack_user_project_id': named}
            failure = self.assertRaises(exception.Invalid, *create, **values)
            assert 'stack_user_project_id' in str(failure)
        for context, named in (
            *((each, own) for each in (self.context, self.admin)),
            *((each, users) for each in (self.context, self.admin)),
            *((self.stranger, each) for each in (None, STRANGER)),
        ):
            self.by_api(context, stack_user_project_id=named)

    def test_an_administrator_updates_the_stack_of_a_project(self):
        stack = self.heat.load(self.stack, context=self.admin)
        self.heat.update(stack, SECOND)
        assert self.scripts() == ['second']
        (row,) = self.deployment_rows()
        assert row.tenant == self.context.project_id

    def test_a_group_of_another_project_shows_and_loses_nothing(self):
        assert rows.of_group(self.stranger, 'group') == []
        rows.mark_unhealthy(self.stranger, [self.own.id])
        rows.change(self.stranger, self.own.id, output_values={'a': 1})
        (row,) = self.deployment_rows()
        assert row.status_reason == self.own.status_reason
        assert 'a' not in (row.output_values or {})

    def test_operators_find_what_lies_there_with_the_statement_of_the_page(
        self,
    ):
        (found,) = re.findall(
            r'\.\. code-block:: sql\n\n((?:    .*\n)+)', PAGE.read_text()
        )
        statement = sqlalchemy.text(found.replace(';', ''))
        assert rows.select(self.context, statement) == []
        self.foreign()
        (row,) = rows.select(self.context, statement)
        assert (row.id, row.tenant) == ('1-foreign', STRANGER)
        assert row.server_id == self.own.server_id
