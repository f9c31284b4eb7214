# SPDX-License-Identifier: Apache-2.0
"""A plan from the field works, with what is wrong in it."""

import pytest

from heat_plugins.plans.content import selection
from tests import sample_plan
from tests.unit.plans import fakes


def test_it_is_rendered_and_each_environment_is_enabled_and_disabled():
    plans = fakes.Cloud().plans
    plan = plans.create('sample', sample_plan.content(), render=True)
    assert len(plan.entries) == 1092
    assert 'network/ports/internal_api_from_pool_v6.yaml' in plan.entries
    offered = plans.capabilities(plan)
    assert len(offered.groups) - 1 == 33
    lost = 'environments/containers-default-parameters.yaml'
    assert len(offered.warnings) == 3
    assert lost in offered.warnings[0]
    found = plans.resolve(plan)
    assert (found.warnings, len(found.files)) == ((), 128)
    roles = [role.name for role in plans.roles(plan)]
    assert roles[:2] == ['Controller', 'Compute']
    before = plan.environment
    tried = 0
    for path, one in offered.environments.items():
        if one.enabled or not one.present:
            continue
        after = selection.select(
            before, offered, {path: True}, requirements=True
        )
        assert path in after.enabled
        added = set(after.enabled) - set(before.enabled)
        off = dict.fromkeys(added, False)
        assert selection.select(after, offered, off) == before
        tried += 1
    assert tried == 200
    # A broken reference of an environment is a warning.
    path = 'environments/storage/cinder-netapp-config.yaml'
    plan = plans.select('sample', {path: True})
    [missing] = plans.resolve(plan).warnings
    assert f'{path} refers to environments/puppet/services/' in missing


@pytest.mark.parametrize('version', sample_plan.RELEASES)
def test_later_releases_of_it_are_created_and_chosen(version):
    plans = fakes.Cloud().plans
    plan = plans.create('sample', sample_plan.content(version), render=True)
    assert 'Controller' in [role.name for role in plans.roles(plan)]
    path = 'environments/network-isolation.yaml'
    plan = plans.select('sample', {path: True}, requirements=True)
    assert path in plan.environment.enabled
    assert plans.resolve(plan).warnings == ()
