# SPDX-License-Identifier: Apache-2.0
"""What is told of heat-engine: its types, Python, secret and policy."""

import dataclasses
import pathlib
import re
import sys
import tempfile
import textwrap
from unittest import mock

from heat.common import policy
from heat.engine import clients
from heat.engine import environment
from heat.engine import resources
from heat.engine import support
from oslo_config import cfg
from oslo_config import fixture as config_fixture
from oslo_upgradecheck import upgradecheck
import testtools

from heat_plugins import config
from heat_plugins import registry
from heat_plugins.checks import engine
from heat_plugins.engine import patches

Code = upgradecheck.Code

PAGE = pathlib.Path(__file__).parents[3] / 'doc/source/install.rst'


# What stands for classes that serve a resource type.
SERVED = {'support_status': support.SupportStatus()}
Ours, Theirs = type('Ours', (), SERVED), type('Theirs', (), SERVED)


class OptionsTest(testtools.TestCase):
    def test_an_entry_that_permits_nothing_and_a_published_key_are_told(self):
        conf = self.useFixture(config_fixture.Config(cfg.CONF))
        # Heat's own is public.
        self.addCleanup(cfg.CONF.clear_override, 'auth_encryption_key')
        cfg.CONF.clear_override('auth_encryption_key')
        hosts, key = engine.webhooks_permitted, engine.secret
        for check, name, value, code, said in (
            (hosts, 'notify_hosts', [], Code.SUCCESS, 'no invalid entry'),
            (hosts, 'notify_hosts', ['a.org'], Code.SUCCESS, 'no invalid'),
            (hosts, 'notify_hosts', ['a.org', 'b/c'], Code.WARNING, ': b/c.'),
            (key, 'temp_url_secret', None, Code.FAILURE, 'public'),
            (key, 'temp_url_secret', 'x' * 32, Code.SUCCESS, 'temp_url_secre'),
            (key, 'temp_url_secret', 'x' * 15, Code.WARNING, 'only 15 charac'),
        ):
            conf.config(group=config.GROUP, **{name: value})
            found = check()
            assert found.code == code
            assert said in found.details


class ResourceTypesTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        classes = {'OS::Test::A': Ours, 'OS::Test::B': Ours}
        self.offer = registry.LoadedTypes(classes=classes, left_out={})
        self.patch(registry, 'examine', lambda conf: self.offer)
        self.environment = environment.Environment({}, user_env=False)
        self.patch(resources, 'global_env', lambda: self.environment)
        for name in classes:
            self.environment.register_class(name, Ours)
        clients.initialise()

    def assert_told(self, code, *texts):
        found = engine.resource_types()
        for text in texts:
            assert text in found.details
        assert found.code == code

    def test_a_class_of_another_plugin_or_a_template_is_named(self):
        self.environment.register_class('OS::Test::B', Theirs)
        self.assert_told(
            Code.FAILURE, f'OS::Test::B: served by {__name__}', 'plugin_dirs'
        )
        self.environment.registry.load({'OS::Test::B': 'file:///b.yaml'})
        self.assert_told(Code.FAILURE, 'OS::Test::B: served by file:///b.yaml')
        # None of ours has one remedy.
        self.environment = environment.Environment({}, user_env=False)
        self.environment.register_class('OS::Test::A', Theirs)
        self.assert_told(Code.FAILURE, 'python -m heat_plugins')

    def test_a_type_that_cannot_load_is_a_failure_with_its_reason(self):
        reason = registry.LoadError('it lacks a library')
        left_out = {('OS::Test::C', 'OS::Test::D'): reason}
        self.offer = dataclasses.replace(self.offer, left_out=left_out)
        said = 'OS::Test::C, OS::Test::D: left to Heat, because it lacks a '
        self.assert_told(Code.FAILURE, f'{said}library.')

    def test_a_client_that_lacks_or_a_plugin_that_breaks_the_engine_is_told(
        self,
    ):
        self.patch(engine, 'CLIENTS', (*engine.CLIENTS, 'no_such_client'))
        self.assert_told(Code.FAILURE, 'no client no_such_client')
        broken = mock.Mock(side_effect=ImportError('no colour'))
        self.patch(resources, 'global_env', broken)
        self.assert_told(Code.FAILURE, 'cannot start', 'ImportError: no colou')


class PythonTest(testtools.TestCase):
    def test_a_parser_that_may_fail_in_threads_is_told(self):
        threads = type('Module', (), {'ThreadGroup': 1})
        told, safe = 'gh-106905', 'Python 3.12.2 or later'
        for version, kind, is_fit, said in (
            ((3, 11, 14), threads, None, safe),
            ((3, 12, 1), threads, None, told),
            ((3, 12, 2), threads, None, 'Python'),
            ((3, 11, 0), object(), None, 'green threads'),
            ((3, 11, 0), threads, lambda name: False, told),
        ):
            self.patch(sys, 'version_info', version)
            self.patch(engine, 'service', kind)
            self.patch(engine.patches, 'is_fit', is_fit or patches.is_fit)
            found = engine.python()
            assert found.code == (Code.WARNING if is_fit else Code.SUCCESS)
            assert said in found.details
            assert (told in found.details) == (said in (told, safe))


class PolicyTest(testtools.TestCase):
    def check(self, text='{}', *, new_defaults=True):
        cfg.CONF([], project='heat', default_config_files=[])
        self.addCleanup(cfg.CONF.reset)
        policy.Enforcer()
        conf = self.useFixture(config_fixture.Config(cfg.CONF))
        with tempfile.NamedTemporaryFile('w', suffix='.yaml') as file:
            print(text, file=file, flush=True)
            given = {'enforce_new_defaults': new_defaults}
            conf.config(group='oslo_policy', policy_file=file.name, **given)
            return engine.policy()

    def test_a_reader_starts_nothing_by_heat_s_defaults(self):
        found = self.check()
        assert found.code == Code.SUCCESS, found.details
        assert 'asks the policy stacks:update' in found.details
        assert 'accept results: software_configs:show' in found.details

    def test_the_lines_of_the_page_leave_strangers_nothing_to_read(self):
        pattern = r'\.\. code-block:: yaml\n\n((?: +"\w+:\w+".*\n)+)'
        (lines,) = re.findall(pattern, PAGE.read_text())
        found = self.check(textwrap.dedent(lines))
        assert 'accept results' not in found.details

    def test_rules_that_are_too_wide_are_named(self):
        found = self.check(new_defaults=False)
        assert found.code == Code.WARNING
        for said in (
            *('stacks:update', 'software_configs:create'),
            *('software_deployments:create', 'enforce_new_defaults = true'),
        ):
            assert said in found.details
        # One of the operator's own, too.
        found = self.check('"stacks:update": "role:reader"')
        assert found.code == Code.WARNING
        assert 'role reader: stacks:update. So' in found.details
