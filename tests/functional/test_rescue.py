# SPDX-License-Identifier: Apache-2.0
"""Deployments of an engine that has died are resumed, whoever asks or not."""

import pytest

from tests.functional import base
from tests.functional import conftest
from tests.functional import servers

#: A new engine tells the one before dead after seconds.
CONF = """\
[DEFAULT]
periodic_interval = 5

[heat_plugins]
rescue_interval = 5
"""


@pytest.fixture
def alone(request, tmp_path):
    """A cloud whose engine is one process, that does not fork."""
    conf = tmp_path / 'heat.conf'
    conf.write_text(CONF)
    yield from conftest.clouds(
        request, 'rescue', plugin=base.ROOT, conf=[conf]
    )


@pytest.mark.skipif(
    conftest.PROFILE != 'small', reason='other engines look there'
)
@pytest.mark.timeout(300)
def test_a_delete_goes_on_though_nobody_touches_a_stack(alone):
    stack = base.Stack(alone.session(), base.software(actions=['DELETE']))
    stack.wait('CREATE_COMPLETE')
    stack.delete()
    before = stack.waiting(action='DELETE')
    alone.kill('heat')
    log = alone.log('heat')
    size = log.stat().st_size
    alone.start('heat')
    # To look at the stack itself would be to touch it.
    base.until(
        lambda: (
            'while it worked on deployment of stack' in log.read_text()[size:]
        )
    )

    def handed_anew():
        found = stack.deployment()
        is_new = found and found.config['id'] != before.config['id']
        return found if is_new else None

    assert base.until(handed_anew).put(servers.body()) == 201
    stack.wait('DELETE_COMPLETE')
    # Heat deletes the stack's trust and project only then, which may fail.
    base.until(lambda: stack.name not in _names(alone))


def _names(cloud):
    stacks = cloud.session().get('orchestration', '/stacks').json()['stacks']
    return [one['stack_name'] for one in stacks]
