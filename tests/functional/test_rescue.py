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


@pytest.mark.skipif(
    conftest.PROFILE != 'small', reason='other engines look there'
)
@pytest.mark.timeout(300)
def test_a_delete_goes_on_though_nobody_touches_a_stack(request, tmp_path):
    conf = tmp_path / 'heat.conf'
    conf.write_text(CONF)
    # Its engine is one process, that does not fork.
    for cloud in conftest.clouds(
        request, 'rescue', plugin=base.ROOT, conf=[conf]
    ):
        stack = base.Stack(cloud.session(), base.software(actions=['DELETE']))
        stack.wait('CREATE_COMPLETE')
        stack.delete()
        before = stack.waiting(action='DELETE')
        cloud.kill('heat')
        log = cloud.log('heat')
        size = log.stat().st_size
        cloud.start('heat')
        # To look at the stack itself would be to touch it.
        base.until(
            lambda log=log, size=size: (
                'while it worked on deployment of stack'
                in log.read_text()[size:]
            ),
            45,
        )
        again = base.until(
            lambda stack=stack, before=before: (
                (found := stack.deployment())
                and found.config['id'] != before.config['id']
                and found
            )
        )
        assert again.put(servers.body()) == 201
        stack.wait('DELETE_COMPLETE')
