# SPDX-License-Identifier: Apache-2.0
"""A plan from the field works, with what is wrong in it."""

import pytest
import testtools

from heat_plugins.plans.content import selection
from tests import sample_plan
from tests.unit.plans import fakes

LOST = (
    'environments/containers-default-parameters.yaml',
    'environments/cinder-veritas-hyperscale-config.yaml',
    'environments/manila-cephfsnative-config-docker.yaml',
)


class SampleTest(testtools.TestCase):
    """One plan for all: to render it takes a second."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.cloud = fakes.Cloud()
        cls.plan = cls.cloud.plans.create(
            'sample', sample_plan.content(), render=True
        )

    def test_it_is_rendered_and_read(self):
        plans = self.cloud.plans
        for path in (
            'overcloud.yaml',
            'puppet/controller-role.yaml',
            'network/ports/internal_api_from_pool_v6.yaml',
            'network/external.yaml',
        ):
            assert path in self.plan.entries
        assert len(self.plan.entries) == 1092
        found = plans.capabilities(self.plan)
        assert len(found.groups) - 1 == 33
        warning = (
            'capabilities-map.yaml names {}, which the plan does not have'
        )
        assert list(found.warnings) == [*map(warning.format, LOST)]
        found = plans.resolve(self.plan)
        assert (found.warnings, len(found.files)) == ((), 128)
        assert [role.name for role in plans.roles(self.plan)] == [
            'Controller',
            'Compute',
            'BlockStorage',
            'ObjectStorage',
            'CephStorage',
        ]
        # A broken reference of an environment is a warning.
        path = 'environments/storage/cinder-netapp-config.yaml'
        plan = plans.select('sample', {path: True})
        [missing] = plans.resolve(plan).warnings
        assert (
            f'{path} refers to environments/puppet/services/'
            'cinder-backend-netapp.yaml,'
        ) in missing

    def test_each_environment_is_enabled_and_disabled_again(self):
        offered = self.cloud.plans.capabilities(self.plan)
        before = self.plan.environment
        tried = 0
        for path, one in offered.environments.items():
            if one.enabled or not one.present:
                continue
            after = selection.select(
                before, offered, {path: True}, requirements=True
            )
            assert path in after.enabled
            added = set(after.enabled) - set(before.enabled)
            assert (
                selection.select(after, offered, dict.fromkeys(added, False))
                == before
            )
            tried += 1
        assert tried == 200


@pytest.mark.parametrize('version', sample_plan.RELEASES)
def test_later_releases_of_it_are_created_and_chosen(version):
    plans = fakes.Cloud().plans
    plan = plans.create('sample', sample_plan.content(version), render=True)
    assert 'Controller' in [role.name for role in plans.roles(plan)]
    path = 'environments/network-isolation.yaml'
    plan = plans.select('sample', {path: True}, requirements=True)
    assert path in plan.environment.enabled
    assert plans.resolve(plan).warnings == ()
