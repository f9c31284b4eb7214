# SPDX-License-Identifier: Apache-2.0
"""Every replaced part of Heat is there in each Heat, and does the same.

These run under each Heat that is supported.
"""

import inspect
import sys
import threading
import types
from typing import ClassVar
from unittest import mock

from heat.db import api as db_api
from heat.engine import resource
from heat.engine import service
from heat.engine import sync_point
from heat.engine import template
from oslo_config import cfg
import testtools

from heat_plugins import registry
from heat_plugins.engine import patches
from heat_plugins.engine.database import resources
from heat_plugins.resources.software import server_bound
from heat_plugins.signals import presigned
from tests.unit import heat_fixture
from tests.unit.resources import deployments

ALL = registry.DEPLOYMENT_TYPES | {'OS::Mistral::Workflow'}


class Owned:
    """Stands for a module of Heat's, with a function and a class."""

    class Group:
        def add(self, func):
            return func


def patch(**values):
    given = {
        'module': __name__,
        'function': 'Owned.Group.add',
        'parameters': ('self', 'func'),
        'wrap': lambda heats: lambda group, func: [heats(group, func)],
        'purpose': 'a test',
        'without': 'nothing happens',
        'gain': 'none',
    }
    return patches.Patch(**{**given, **values})


class PatchTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.patch(Owned.Group, 'add', Owned.Group.add)

    def test_it_replaces_a_function_once(self):
        for values in (
            {'function': 'Owned.Group.new'},
            {'function': 'Gone.add'},
            {'module': 'heat.gone'},
            {'parameters': ('self', 'callback')},
        ):
            self.assertRaises(patches.Unfit, patch(**values).install)
        assert Owned.Group().add(1) == 1
        for _ in range(2):
            patch().install()
        assert Owned.Group().add(1) == [1]

    def test_each_of_ours_fits_this_heat(self):
        for each in patches.needed(ALL):
            each.probe()


class InstallTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.patch(Owned.Group, 'add', Owned.Group.add)
        self.warning = mock.Mock()
        self.patch(patches.LOG, 'warning', self.warning)

    def install(self, *installed, types=ALL):
        self.patch(patches, 'PATCHES', installed)
        patches.install(types)
        return [call.args for call in self.warning.call_args_list]

    def test_what_does_not_fit_costs_one_warning_and_nothing_else(self):
        told = self.install(patch(parameters=('other',)), patch())
        assert len(told) == 1
        assert 'nothing happens' in told[0][0] % told[0][1]
        assert Owned.Group().add(1) == [1]

    def test_no_patch_is_installed_where_nothing_needs_it(self):
        other = {'OS::Mistral::Workflow'}
        with mock.patch.dict(sys.modules):
            # Another program than heat-engine.
            del sys.modules['heat.engine.service']
            self.install(patch())
        assert self.install(patch(since=99)) == []
        # Deployments of Heat's own classes.
        self.install(patch(), types=other)
        assert Owned.Group().add(1) == 1
        self.install(patch(serves_deployments=False), types=other)
        assert Owned.Group().add(1) == [1]


class HeatTest(testtools.TestCase):
    """What is replaced does the same as before, and what it is for."""

    def setUp(self):
        super().setUp()
        for each in patches.needed(ALL):
            owner, heats = each.probe()
            self.patch(owner, each.function.rpartition('.')[2], heats)
        patches.install(ALL)

    def test_a_sync_point_is_read_as_before(self):
        data = {(7, True): {'a': (1, 'x')}, (12, False): None}
        stored = sync_point.serialize_input_data(data)
        assert sync_point.deserialize_input_data(stored) == data
        assert sync_point.deserialize_input_data(stored) == data, 'from memory'

    def test_only_threads_that_run_stay_in_the_list_of_a_stack(self):
        if registry.release() < 25:
            self.skipTest('Heat 24 has green threads')
        group = service.ThreadGroup()
        ended = threading.Event()
        self.addCleanup(ended.set)
        running = group.add_thread(ended.wait, 30)
        for _ in range(10):
            group.add_thread(lambda: None).join()
        assert group.threads == [running]


class OverrideTest(testtools.TestCase):
    """Our methods take what Heat passes to those that they override."""

    def test_each_method_takes_what_heats_takes(self):
        offer = registry.examine(cfg.CONF)
        assert offer.left_out == {}
        wrong = {
            f'{cls.__module__}.{cls.__name__}.{name}: Heat has {heats}'
            for served in offer.classes.values()
            for cls, name, ours, heats in _overridden(served)
            if not _accepts(ours, heats)
        }
        assert wrong == set()

    def test_each_private_method_that_ours_override_is_listed(self):
        overridden = {
            name
            for served in registry.examine(cfg.CONF).classes.values()
            for _, name, _, _ in _both(served)
            if name.startswith('_') and not name.startswith('__')
        }
        assert overridden == patches.OVERRIDDEN

    def test_heats_loops_have_what_ours_read_of_them(self):
        for name, since in patches.LOOPS.items():
            if registry.release() < since:
                continue
            heats = getattr(resource.Resource, name)
            names = inspect.signature(heats).parameters.keys()
            assert names >= patches.LOOP_PARAMETERS, name
        ours = {
            name
            for name in vars(server_bound.Blocking)
            if name.endswith('_convergence')
        }
        assert ours == patches.LOOPS.keys()


def _overridden(served):
    """Yield our classes of a type, and their methods that Heat has, too."""
    for cls, name, *both in _both(served):
        if all(isinstance(each, types.FunctionType) for each in both):
            yield cls, name, *map(inspect.signature, both)


def _both(served):
    """Yield our classes of a type, and what Heat's have by the same name."""
    mro = inspect.getmro(served)
    for place, cls in enumerate(mro):
        if not cls.__module__.startswith('heat_plugins.'):
            continue
        of_heat = [
            each
            for each in mro[place + 1 :]
            if not each.__module__.startswith('heat_plugins.')
            and issubclass(each, resource.Resource)
        ]
        for name, ours in vars(cls).items():
            found = [vars(one)[name] for one in of_heat if name in vars(one)]
            # A test that has patched a class leaves it what it inherits.
            if found and ours is not found[0]:
                yield cls, name, ours, found[0]


def _accepts(ours, heats):
    variable = (
        inspect.Parameter.VAR_POSITIONAL,
        inspect.Parameter.VAR_KEYWORD,
    )
    taken = [
        each for each in heats.parameters.values() if each.kind not in variable
    ]
    by_name = [each for each in taken if each.kind is each.KEYWORD_ONLY]
    try:
        ours.bind(
            *[None] * (len(taken) - len(by_name)),
            **{each.name: None for each in by_name},
        )
    except TypeError:
        return False
    return True


class SignatureTest(testtools.TestCase):
    def test_a_resource_knows_the_url_of_a_signal(self):
        seen, asked = [], []
        self.patch(
            patches.histories,
            'take_of_member',
            lambda *about: asked.append(about),
        )
        signal = patches.note_signature(lambda *args, **_: seen.append(args))
        checked = '{"ec2Credentials": {"signature": "a"}}'
        details = {'deploy_status_code': 0}
        for credentials in (checked, None):
            signal(
                'engine',
                mock.Mock(aws_creds=credentials),
                stack_identity={'stack_id': 'stack'},
                resource_name='deployment',
                details=details,
                sync_call=False,
            )
        by_url, otherwise = (args[-1] for args in seen)
        assert by_url == otherwise == details
        assert by_url.signature == 'a'
        assert not isinstance(otherwise, presigned.Presigned)
        assert asked == [('stack', 'deployment', 'a', details)]


class ReplacedTest(heat_fixture.HeatTestCase):
    """A server that is replaced reads its own metadata, and no other's."""

    SERVER: ClassVar = deployments.template()['resources']['server']
    TEMPLATE: ClassVar = {
        'heat_template_version': '2021-04-16',
        'resources': {'server': SERVER, 'other': SERVER},
    }

    def setUp(self):
        super().setUp()
        self.stack = self.heat.create(self.TEMPLATE)
        former = self.stack['server']
        former.data_set('user_id', 'former')
        newer = former.make_replacement(self.stack.t.id, set())
        db_api.resource_data_set(self.heat.context, newer, 'user_id', 'newer')
        self.heat.change(
            newer, action='CREATE', rsrc_metadata={'deployments': ['newer']}
        )
        self.former = former

    def shown(self, user, name='server'):
        (patch,) = (
            each
            for each in patches.PATCHES
            if each.function == 'EngineService._authorize_stack_user'
        )
        authorize = patch.wrap(patch.probe()[1])
        cnxt = mock.Mock(user_id=user, aws_creds=None)
        stack = self.heat.load(self.stack)
        if authorize(self.heat.rpc.engine, cnxt, stack, name):
            return stack.resource_get(name).metadata_get()
        return None

    def test_each_server_reads_its_own(self):
        assert self.shown('newer') == {'deployments': ['newer']}
        own = self.shown('former')
        assert own['deployments'] == []
        assert 'heat' in own['os-collect-config']
        for user, name in (
            ('former', 'other'),
            ('former', 'none'),
            ('nobody', 'server'),
        ):
            assert self.shown(user, name) is None
        # Also while the stack is deleted: Heat does so by an update to this.
        empty = template.Template.create_empty_template()
        number = empty.store(self.heat.context)
        db_api.stack_update(
            self.heat.context, self.stack.id, {'raw_template_id': number}
        )
        assert self.heat.load(self.stack).resources == {}
        place = self.former.metadata_get()['os-collect-config']
        assert self.shown('former')['os-collect-config'] == place
        assert self.shown('nobody') is None
        # Nothing when it is gone.
        db_api.resource_delete(self.heat.context, self.former.id)
        assert self.shown('former') is None

    def test_what_was_created_later_has_what_heat_gives_it(self):
        newest = self.former.make_replacement(self.stack.t.id, set())
        db_api.resource_data_set(self.heat.context, newest, 'user_id', 'last')
        stack = self.heat.load(self.stack)
        self.patch(stack, 'resource_get', lambda name: self.former)
        for user in ('last', 'former'):
            assert not resources.show_replaced(stack, 'server', user)

    def test_what_is_no_server_has_what_heat_gives_it(self):
        user = {'type': 'AWS::IAM::User'}
        self.stack = self.heat.create(
            {**self.TEMPLATE, 'resources': {'user': user}}, name='users'
        )
        former = self.stack['user']
        former.data_set('user_id', 'former')
        newer = former.make_replacement(self.stack.t.id, set())
        self.heat.change(newer, action='CREATE')
        assert self.shown('former', 'user') is None
