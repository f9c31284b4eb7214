# SPDX-License-Identifier: Apache-2.0
"""What Heat's policy permits readers of a project."""

import pathlib
import re
import tempfile
import textwrap

from heat.common import policy
from oslo_config import cfg
from oslo_upgradecheck import upgradecheck
import testtools

from heat_plugins.checks import engine

Code = upgradecheck.Code

PAGE = pathlib.Path(__file__).parents[3] / 'doc/source/install.rst'


class PolicyTest(testtools.TestCase):
    def check(self, text='{}', *, new_defaults=True):
        cfg.CONF([], project='heat', default_config_files=[])
        self.addCleanup(cfg.CONF.reset)
        policy.Enforcer()
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, 'policy.yaml')
            path.write_text(text)
            for name, value in {
                'policy_file': str(path),
                'enforce_new_defaults': new_defaults,
            }.items():
                cfg.CONF.set_override(name, value, 'oslo_policy')
                self.addCleanup(cfg.CONF.clear_override, name, 'oslo_policy')
            return engine.policy()

    def test_a_reader_starts_nothing_by_heat_s_defaults(self):
        found = self.check()
        assert found.code == Code.SUCCESS, found.details
        assert 'asks the policy stacks:update' in found.details
        assert 'accept results: software_configs:show' in found.details

    def test_the_lines_of_the_page_leave_strangers_nothing_to_read(self):
        (lines,) = re.findall(
            r'\.\. code-block:: yaml\n\n((?: +"\w+:\w+".*\n)+)',
            PAGE.read_text(),
        )
        found = self.check(textwrap.dedent(lines))
        assert 'accept results' not in found.details

    def test_the_rules_of_former_years_are_too_wide(self):
        found = self.check(new_defaults=False)
        assert found.code == Code.WARNING
        for name in (
            'stacks:update',
            'software_configs:create',
            'software_deployments:create',
            'enforce_new_defaults = true',
        ):
            assert name in found.details

    def test_a_rule_of_the_operator_s_own_is_named(self):
        found = self.check('"stacks:update": "role:reader"')
        assert found.code == Code.WARNING
        assert 'role reader: stacks:update. So' in found.details
