# SPDX-License-Identifier: Apache-2.0
"""Clouds without Mistral, and without an object store, too.

What works there, as the page "A cloud without an object store" has it, and
what says no.
"""

import json
import re

import pytest

from heat_plugins import wording
from tests import pages
from tests.functional import base
from tests.functional import conftest
from tests.functional import planning
from tests.functional import servers
from tests.functional import test_status

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        conftest.PROFILE != 'small' or conftest.STORE != 'swift',
        reason='leaves services out of the profile small',
    ),
]

#: What does not work; the mini cloud has no Zaqar.
ABSENT = {
    'Deployments by TEMP_URL_POLL',
    'Deployments by ZAQAR_SIGNAL',
    'Live output and stopping of runs',
    'Machines that join',
    'Plans',
    'Plans by workflow',
    'Workflows',
}


@pytest.fixture(scope='module')
def without_mistral(request):
    yield from conftest.clouds(request, 'poor', omitted=['mistral'])


@pytest.fixture
def bare(without_mistral):
    """The same cloud; its catalogue has no object store, either."""
    with base.no_store(without_mistral):
        yield without_mistral


def test_plans_need_no_mistral(without_mistral, tmp_path):
    plan = planning.Plan(without_mistral, tmp_path, 'shop')
    plan.make(planning.files())
    assert plan('parameter set', 'who=you')
    assert plan('deploy')['status'] == 'CREATE_COMPLETE'
    assert plan('diff') == []
    plan.purge()


#: What shows each row of "What works" among the commands of the page.
SHOWN = {
    'Deployments': 'openstack stack create',
    ':doc:`groups`, with ``max_failures`` and ``rolling_update``': 'rolling',
    '``run start``, also of a script of your own, on one server or many': (
        '--canary 1'
    ),
    'Outputs': 'seq 20000',
    ':doc:`schedules`': 'schedule run web nightly',
    '``trigger_url``, and signals that start runs': '"$url"',
}


def test_the_status_names_what_is_absent_and_each_row_of_the_page_works(bare):
    _, rows = test_status.status(bare, 'feature', 'list', '-f', 'json')
    absent = {row['name']: row['reason'] for row in rows if not row['works']}
    # Whether triggers fire is not known where there are none.
    absent.pop('Cron triggers', None)
    assert set(absent) == ABSENT
    said = f'{wording.no_service("object-store")}.'
    assert absent['Plans by workflow'] == said
    section = pages.read('without-object-store', 'What works')
    typed = '\n'.join(pages.blocks(section))
    assert re.findall(r'^   \* - (.+)$', section, re.M)[1:] == [*SHOWN]
    for command in SHOWN.values():
        assert command in typed
    text = (base.ROOT / 'contrib/examples/software.yaml').read_text()
    stack = base.Stack(bare.session(), text, name='web')
    with servers.agent(bare, stack, 'web_server'):
        stack.wait('CREATE_COMPLETE')
        shown = stack.resource('page_deployment', 'signal_transport')
        assert shown['attributes']['signal_transport'] == 'CFN_SIGNAL'
        servers.type_script(typed, base.ROOT, bare.env())
        # Those of web, that of the group, and that by the URL.
        done = ['complete'] * 5
        base.until(
            lambda: [e['state'] for e in bare.software('run list')] == done
        )
        command = 'stack resource show rolling deployments -f json'
        shown = bare.openstack(*command.split(), '--with-attr', 'members')
        earlier, later = sorted(
            json.loads(shown)['attributes']['members'].values(),
            key=lambda one: str(one['delivered_at']),
        )
        assert earlier['action'] == later['action'] == 'UPDATE'
        assert earlier['ended_at'] <= later['delivered_at']
        (printed,) = [
            each['id']
            for each in bare.software('run list --stack web')
            if each['action'] == 'APPLY'
        ]
        outputs = bare.software(f'run output {printed}')
        assert outputs['deploy_stdout'].endswith('\n20000\n')
        command = 'stack delete --yes --wait web rolling notes'
        bare.openstack(*command.split())
    for name in ('first', 'second', 'notes'):
        bare.agent(name).stop(remove=True)
