# SPDX-License-Identifier: Apache-2.0
"""Which deployments are gone on with after their engine has died."""

import datetime
import time
from unittest import mock
import uuid

from heat.common import context
from heat.common import exception
from heat.common import service_utils
from heat.db import api as db_api
from heat.engine import check_resource
from heat.engine import resource
from heat.engine import stack as parser
from heat.engine import sync_point
from heat.objects import service as service_objects
from heat.rpc import worker_client
from oslo_config import cfg
from oslo_utils import fixture as utils_fixture
from oslo_utils import timeutils

from heat_plugins import metrics
from heat_plugins import tokens
from heat_plugins.engine import rescue
from heat_plugins.engine.database import resources
from heat_plugins.engine.database import rows
from tests.unit import counted
from tests.unit import heat_fixture
from tests.unit.resources import deployments

TEMPLATE = {
    'heat_template_version': '2021-04-16',
    'resources': {
        'value': {'type': 'OS::Heat::Value', 'properties': {'value': 1}}
    },
}


class LookTest(heat_fixture.HeatTestCase):
    def setUp(self):
        super().setUp()
        self.context = context.get_admin_context()
        self.answering = set()
        self.patch(
            service_utils,
            'engine_alive',
            lambda context, engine_id: engine_id in self.answering,
        )
        self.stack = self.heat.create(TEMPLATE)
        self.engine_id = str(uuid.uuid4())
        self.rescuer = rescue.Rescuer()
        self.set_stack()

    def take_away(self, held):
        return resources.change(
            self.context,
            held,
            engine_id=None,
            status='FAILED',
            status_reason=tokens.ENGINE_DIED.after(held.reason),
        )

    def set_stack(self, stack=None, **values):
        db_api.stack_update(
            self.context,
            (stack or self.stack).id,
            {'status': 'IN_PROGRESS', 'convergence': True, **values},
        )

    def held(self, stack=None, **values):
        resource = (stack or self.stack)['value']
        changed = {'status': 'IN_PROGRESS', 'engine_id': self.engine_id}
        return self.heat.change(resource.id, **{**changed, **values})

    def look(self):
        went_on = []
        self.patch(rescue, '_TYPES', {'OS::Heat::Value'})
        for how in ('_begin', '_resume'):
            self.patch(
                rescue, how, lambda held, *loaded: went_on.append(held) or True
            )
        assert self.rescuer.look() == went_on
        return [each.id for each in went_on]

    def test_what_a_dead_engine_held_is_gone_on_with(self):
        counts = self.useFixture(counted.Counted())
        number = self.held()
        assert self.look() == [number]
        assert counts.of(metrics.RESCUED) == {'resource': 1}

    def test_a_worker_of_an_action_that_has_just_begun_may_be_at_it(self):
        # Heat's own tries to lock it for 4 s.
        number, now = self.held(), timeutils.utcnow()
        self.useFixture(utils_fixture.TimeFixture(now))
        for age, expected in (
            (0, []),
            (9, []),
            (11, [number]),
            (-9, [number]),
        ):
            begun = now - datetime.timedelta(seconds=age)
            self.set_stack(action='DELETE', updated_at=begun)
            assert self.look() == expected

    def test_it_is_done_as_the_user_whose_trust_the_stack_has(self):
        self.held()
        stored = heat_fixture.new_context(trustor_user_id='owner')
        self.patch(type(self.stack), 'stored_context', lambda stack: stored)
        (held,) = resources.held(self.context)
        stack, _found, _scope = rescue.load(held)
        assert stack.context.user_id == 'owner'

    def test_an_engine_that_reports_is_not_asked(self):
        self.held()
        given = {'engine_id': self.engine_id, 'report_interval': 60}
        for each in ('host', 'hostname', 'binary', 'topic'):
            given[each] = 'engine'
        service_objects.Service.create(self.context, given)
        self.patch(service_utils, 'engine_alive', None)
        assert self.look() == []

    def test_what_no_dead_engine_holds_is_left(self):
        for values, stack, answering in (
            ({}, {}, {self.engine_id}),
            ({'engine_id': None}, {}, ()),
            ({}, {'status': 'COMPLETE'}, ()),
            # Heat itself looks after these.
            ({}, {'convergence': False}, ()),
        ):
            self.answering = answering
            self.held(**values)
            self.set_stack(**stack)
            assert self.look() == []
            self.answering = ()
            self.set_stack()
            assert [self.held()] == self.look()

    def test_in_a_stack_that_has_failed_what_has_no_server_is_left(self):
        number = self.held()
        self.set_stack(status='FAILED')
        assert self.look() == []
        # Until its update.
        self.set_stack()
        assert self.look() == [number]
        self.taken()
        self.set_stack(status='FAILED')
        assert self.look_later() == []

    def test_what_is_not_ours_is_looked_into_once_after_each_change(self):
        self.held()
        assert self.rescuer.look() == []
        with mock.patch.object(service_utils, 'engine_alive', None):
            assert self.rescuer.look() == []
        number = self.held(engine_id=None)
        self.held()
        assert self.look() == [number]

    def test_one_that_cannot_be_loaded_does_not_keep_others_waiting(self):
        first = self.held()
        other = self.heat.create(TEMPLATE, name='other')
        self.set_stack(stack=other)
        second = self.held(stack=other)
        real = rescue.load

        def load(held):
            if held.id == first:
                raise exception.NotFound('its credentials')
            return real(held)

        self.patch(rescue, 'load', load)
        assert self.look() == [second]

    def test_of_several_that_see_a_dead_engine_one_resumes_it(self):
        number = self.held()
        (held,) = resources.held(self.context)
        assert self.take_away(held)
        assert not self.take_away(held)
        row = db_api.resource_get(self.context, number)
        assert (row.engine_id, row.status) == (None, 'FAILED')
        assert self.engine_id in row.status_reason
        # Those that see it later wait again.
        (held,) = resources.held(self.context)
        assert self.take_away(held)
        (again,) = resources.held(self.context)
        assert again.reason == held.reason
        assert again.key != held.key
        # An engine that goes on after all keeps its resource.
        self.held(status='COMPLETE')
        assert not self.take_away(again)

    def taken(self, **values):
        """Take the resource from its engine, and tell nobody; its number."""
        number = self.held(**values)
        (held,) = resources.held(self.context)
        assert self.take_away(held)
        return number

    def look_later(self):
        """Look twice, with the time between that Heat needs to check."""
        now = time.monotonic()
        self.patch(time, 'monotonic', lambda: now)
        assert self.look() == []
        self.patch(time, 'monotonic', lambda: now + rescue.CHECKING + 1)
        return self.look()

    def test_what_was_taken_and_not_checked_is_resumed_later(self):
        self.held(status='FAILED', engine_id=None, status_reason='Resource')
        assert self.look_later() == []
        for values, is_resumed in (
            ({}, True),
            ({'replaced_by': 7}, False),
            # A deletion of what was replaced.
            ({'replaced_by': 7, 'action': 'DELETE'}, True),
        ):
            self.rescuer = rescue.Rescuer()
            expected = [self.taken(**values)] if is_resumed else []
            self.taken(**values)
            assert self.look_later() == expected

    def made_again(self, number, **values):
        """Let something have been made in the place of a resource."""
        made = {
            'name': 'value',
            'stack_id': self.stack.id,
            'root_stack_id': self.stack.id,
            'current_template_id': self.stack.t.id,
            'action': 'INIT',
            'status': 'COMPLETE',
            'replaces': number,
            'requires': [],
            'needed_by': [],
        }
        return db_api.resource_create(self.context, {**made, **values}).id

    def test_what_was_taken_and_made_again_is_left(self):
        number = self.taken(replaces=7)
        # What other traversals have made does not count.
        other = self.heat.create(TEMPLATE, name='other')
        self.made_again(number, current_template_id=other.t.id)
        self.made_again(number, action='DELETE')
        assert self.look_later() == [number]
        # Heat forgets whom it replaces once that has gone.
        self.made_again(None)
        assert self.look_later() == []

    def test_a_replacement_that_nobody_has_begun_is_resumed_later(self):
        number = self.stack['value'].id
        other = self.heat.create(TEMPLATE, name='other')
        for values, is_resumed in (
            # It waits for its first turn.
            ({'replaces': None}, False),
            # It was made before the last update.
            ({'current_template_id': other.t.id}, False),
            ({}, True),
            # Of two the last.
            ({}, True),
        ):
            made = self.made_again(number, **values)
            expected = [made] if is_resumed else []
            assert self.look_later() == expected


class FailTest(deployments.DeploymentTestCase):
    """What is not repeated fails, and goes from its server."""

    def setUp(self):
        super().setUp()
        self.patch(service_utils, 'engine_alive', lambda *_: False)
        self.context = context.get_admin_context()
        self.patch(
            parser.Stack, 'stored_context', lambda stack: self.heat.context
        )
        self.stack, _ = self.waiting()
        self.hold()

    def hold(self, **values):
        """Let an engine that is dead work on the deployment."""
        number, engine_id = self.stack['deployment'].id, str(uuid.uuid4())
        held = {'status': 'IN_PROGRESS', 'engine_id': engine_id}
        self.heat.change(number, **held, **values)

    def set_stack(self, **values):
        db_api.stack_update(self.context, self.stack.id, values)

    def look(self, status, *nodes):
        edges = [[[node, True], None] for node in nodes]
        values = {'status': status, 'current_deps': {'edges': edges}}
        self.set_stack(convergence=True, **values)
        return [each.name for each in rescue.Rescuer().look()]

    def test_what_has_changed_since_it_was_seen_is_left(self):
        real = rescue.load

        def load(held):
            self.heat.change(held.id)
            return real(held)

        self.patch(rescue, 'load', load)
        assert self.look('FAILED') == []
        assert len(self.deployment_rows()) == 1

    def retriggered(self):
        checked = []
        self.patch(
            check_resource.CheckResource,
            'retrigger_check_resource',
            lambda checker, context, number, stack: checked.append(number),
        )
        return checked

    def test_in_one_that_fails_as_it_is_asked_whether_engines_live(self):
        def alive(*_):
            self.set_stack(status='FAILED')
            return False

        self.patch(service_utils, 'engine_alive', alive)
        number = self.stack['deployment'].id
        assert self.look('IN_PROGRESS', number) == ['deployment']
        self.assert_withdrawn(self.stack, 'has died')

    def test_in_one_that_fails_before_anybody_has_checked_it(self):
        checked = self.retriggered()
        number = self.stack['deployment'].id
        assert self.look('IN_PROGRESS', number) == ['deployment']
        assert checked == [number]
        assert len(self.deployment_rows()) == 1
        rescuer = rescue.Rescuer()
        self.set_stack(status='FAILED')
        assert rescuer.look() == []
        self.now += rescue.CHECKING + 1
        assert len(rescuer.look()) == 1
        self.assert_withdrawn(self.stack, 'has died')
        self.now += rescue.CHECKING + 1
        assert rescuer.look() == []

    def test_what_replaces_another_lets_that_be_replaced_again(self):
        # Even if its engine had taken the signal.
        for status in ('IN_PROGRESS', 'COMPLETE'):
            (row,) = self.deployment_rows()
            rows.change(self.stack.context, row.id, status=status)
            checked = self.retriggered()
            self.hold(replaces=7)
            assert self.look('IN_PROGRESS', 7) == ['deployment']
            assert checked == [7]
            again = self.heat.load(self.stack)
            assert again.status == 'IN_PROGRESS'
            # So it does not undo on the server what the other one does there.
            assert again['deployment'].state == ('CREATE', 'FAILED')
            if status == 'IN_PROGRESS':
                self.assert_withdrawn(self.stack, 'has died')
            else:
                (row,) = self.deployment_rows()
                assert row.status == status

    def test_if_nothing_can_be_replaced_the_stack_fails(self):
        def fails(*_, **arguments):
            raise exception.StackValidationFailed(message='no database')

        # What cannot be taken back is tried again.
        with mock.patch.object(rows, 'withdraw', fails):
            assert self.look('FAILED') == []
        assert self.look('IN_PROGRESS') == ['deployment']
        again = self.heat.load(self.stack)
        assert again['deployment'].state == ('CREATE', 'FAILED')
        assert 'has died' in again['deployment'].status_reason
        self.assert_withdrawn(again, 'has died')
        assert again.status == 'FAILED'
        assert 'resources.deployment: Engine' in again.status_reason


class BeginTest(heat_fixture.HeatTestCase):
    """A replacement that Heat was told nothing of."""

    TRAVERSAL = 'a0a0'

    def setUp(self):
        super().setUp()
        self.context = context.get_admin_context()
        self.patch(
            parser.Stack, 'stored_context', lambda stack: self.heat.context
        )
        self.patch(rescue, '_TYPES', {'OS::Heat::Value'})
        self.now = time.monotonic()
        self.patch(time, 'monotonic', lambda: self.now)
        self.rescuer = rescue.Rescuer()

    def look(self):
        """Look twice, with the time between that Heat needs to check."""
        assert self.rescuer.look() == []
        self.now += rescue.CHECKING + 1
        return [each.id for each in self.rescuer.look()]

    def test_it_is_begun_by_one_with_what_the_one_before_was_given(self):
        told = mock.Mock()
        self.patch(worker_client.WorkerClient, 'check_resource', told)
        stack = self.heat.create(TEMPLATE)
        doing = {'status': 'IN_PROGRESS', 'current_traversal': self.TRAVERSAL}
        doing['convergence'] = True
        db_api.stack_update(self.context, stack.id, doing)
        replaced = stack['value']
        number = replaced.make_replacement(stack.t.id, requires=set())
        # Nobody tells of what is in no traversal.
        assert self.look() == []
        # Heat has been told to check what is replaced.
        data = {'input_data': {'tuple:(1, True)': {'id': 1, 'attrs': {}}}}
        point = replaced.id, self.TRAVERSAL, True
        sync_point.create(self.context, *point, stack.id)
        sync_point.update_input_data(self.context, *point, 0, data)
        # One that a user holds back is left.
        again = self.heat.load(stack)
        made, *_scope = resource.Resource.load(
            again.context, number, self.TRAVERSAL, True, {}
        )
        made.trigger_hook('pre-create')
        assert self.look() == []
        made.clear_hook('pre-create')
        # And one that another engine has begun meanwhile.
        real = rescue.load

        def load(held):
            self.heat.change(held.id)
            return real(held)

        with mock.patch.object(rescue, 'load', load):
            assert self.look() == []
        told.assert_not_called()
        assert self.look() == [number]
        given = number, self.TRAVERSAL, data, True, None
        told.assert_called_once_with(mock.ANY, *given)
        row = db_api.resource_get(self.context, number)
        assert (row.action, row.status) == ('INIT', 'COMPLETE')
        # Whoever has begun with it has time to do so.
        assert self.rescuer.look() == []


class ReportTest(heat_fixture.HeatTestCase):
    def test_an_engine_reports_often_where_deployments_are_resumed(self):
        for scans, own, expected in ((30, 60, 10), (30, 5, 5), (0, 60, 60)):
            cfg.CONF.set_override('rescue_interval', scans, 'heat_plugins')
            cfg.CONF.set_override('periodic_interval', own)
            rescue.report_often()
            assert cfg.CONF.periodic_interval == expected
