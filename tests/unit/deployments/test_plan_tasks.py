# SPDX-License-Identifier: Apache-2.0
"""What an update runs on a server: one rule for deployments and members."""

import dataclasses

import pytest

from heat_plugins import heat_values
from heat_plugins import tokens
from heat_plugins.deployments import fleets

ALL = ('CREATE', 'UPDATE', 'DELETE', 'SUSPEND', 'RESUME')

HEALTHY, MARKED = 'Outputs received', tokens.UNHEALTHY.after('again')


MEMBER = fleets.Member(id='deployment', key='web', server_id='server')


def draft(member, action, who='world', transport='NO_SIGNAL', **more):
    values = {
        'who': who,
        'deploy_action': action,
        'deploy_signal_transport': transport,
        **more,
    }
    return heat_values.DerivedConfig(
        name='config',
        group='script',
        config='#!/bin/sh',
        inputs=[{'name': k, 'value': v} for k, v in values.items()],
        outputs=[],
        options={},
    )


def row(action='CREATE', status='COMPLETE', reason=HEALTHY, **given):
    given = {'transport': 'TEMP_URL_POLL', **given}
    return heat_values.DeploymentRow(
        id='deployment',
        server_id='server',
        config=heat_values.Config(
            id='1', **vars(draft(MEMBER, action, **given))
        ),
        action=action,
        status=status,
        reason=reason,
        outputs={},
        input_values={},
        reading_project=None,
    )


def step(found, *, actions=ALL, transport='TEMP_URL_POLL', changed=(), **more):
    """Return the action that runs, with a star if the server has it."""
    update = fleets.Update(
        runs=actions.__contains__, transport=transport, changed=changed, **more
    )
    result = update.task(MEMBER, found, draft, 'UPDATE')
    if result is None:
        return None
    return result.action + ('' if result.delivers else '*')


@pytest.mark.parametrize(
    ('name', 'expected'),
    [
        *(
            (name, 'UPDATE')
            for name in ('actions', 'config', 'input_values', 'name')
        ),
        *((name, None) for name in ('timeout', 'delivery_timeout', 'servers')),
        *((name, None) for name in ('signal_url_lifetime', 'max_failures')),
        *((name, None) for name in ('trigger_url', 'trigger_by_servers')),
    ],
)
def test_what_a_server_must_know_of_runs_update(name, expected):
    assert step(row(), changed=[name]) == expected


@pytest.mark.parametrize(
    ('given', 'wanted', 'expected'),
    [
        ('NO_SIGNAL', 'TEMP_URL_POLL', 'UPDATE'),
        ('TEMP_URL_POLL', 'NO_SIGNAL', 'UPDATE'),
        ('TEMP_URL_POLL', 'CFN_SIGNAL', 'UPDATE'),
        ('NO_SIGNAL', 'AUTO', 'UPDATE'),
        ('CFN_SIGNAL', 'AUTO', None),
        ('TEMP_URL_SIGNAL', 'TEMP_URL_POLL', None),
    ],
)
@pytest.mark.parametrize('changed', [None, ('signal_transport',)])
def test_another_transport_than_the_servers_runs_update(
    given, wanted, expected, changed
):
    found = row(transport=given)
    assert step(found, transport=wanted, changed=changed) == expected


REPEATED = {'changed': None}
CHECKED = {'is_after_update': False}
WITHDRAWN = row('SUSPEND', 'FAILED')
WITHDRAWN = dataclasses.replace(
    WITHDRAWN,
    config=dataclasses.replace(
        WITHDRAWN.config, group='heat-plugins-withdrawn'
    ),
)


@pytest.mark.parametrize(
    ('found', 'given', 'expected'),
    [
        # What is unhealthy runs UPDATE though nothing has changed.
        (row(reason=MARKED), {}, 'UPDATE'),
        (row(reason=MARKED), REPEATED, 'UPDATE'),
        (row(reason=MARKED), {'changed': ['timeout']}, 'UPDATE'),
        (row('RESUME', reason=MARKED), {}, 'UPDATE'),
        # Without UPDATE it runs CREATE.
        (row(reason=MARKED), {'actions': ['CREATE']}, 'CREATE'),
        (row(reason=MARKED), {'actions': ['DELETE']}, None),
        # A repetition compares what servers were given.
        (row(), REPEATED, None),
        (row(deploy_stack_id='former'), REPEATED, None),
        (row(deploy_password='x'), REPEATED, None),
        (row(who='moon'), REPEATED, 'UPDATE'),
        # What the failed one has changed was not lost with it.
        (row(), {**REPEATED, 'actions': ['CREATE']}, None),
        # After a check servers are compared as well.
        (row(), {**CHECKED, 'changed': ['servers']}, None),
        (row(who='moon'), {**CHECKED, 'changed': ['servers']}, 'UPDATE'),
        # The action that it has completed may have another config.
        (row(), {**CHECKED, 'changed': ['config']}, 'UPDATE'),
        # What has not completed is repeated.
        (row(status='FAILED'), {}, 'CREATE'),
        (row('DELETE'), {}, 'CREATE'),
        (row('UPDATE', 'FAILED'), {}, 'UPDATE'),
        (row('SUSPEND', 'FAILED'), {}, 'UPDATE'),
        (row('RESUME', 'FAILED'), {}, 'UPDATE'),
        # A failed action that the config no longer has runs no other.
        (row('UPDATE', 'FAILED'), {'actions': ['CREATE']}, None),
        (row('SUSPEND', 'FAILED'), {'actions': ['CREATE']}, None),
        (WITHDRAWN, {'actions': ['CREATE']}, 'CREATE'),
        # A server that has it is waited for.
        (row('CREATE', 'IN_PROGRESS'), {}, 'CREATE*'),
        (row('UPDATE', 'IN_PROGRESS'), {}, 'UPDATE*'),
        # Not where it cannot answer, or does something else.
        (row('CREATE', 'IN_PROGRESS'), {'transport': 'CFN_SIGNAL'}, 'CREATE'),
        (row('UPDATE', 'IN_PROGRESS'), {'transport': 'CFN_SIGNAL'}, 'UPDATE'),
        (row('CREATE', 'IN_PROGRESS', who='moon'), {}, 'CREATE'),
        (row('UPDATE', 'IN_PROGRESS', who='moon'), {}, 'UPDATE'),
        (row('SUSPEND', 'IN_PROGRESS'), {}, 'UPDATE'),
        # The result for Heat's own URL lies where nobody polls.
        (row(status='IN_PROGRESS', transport='TEMP_URL_SIGNAL'), {}, 'CREATE'),
        # A missing row is replaced.
        (None, {}, 'UPDATE'),
        (None, {'actions': ['CREATE']}, None),
    ],
)
def test_what_runs_depends_on_what_the_row_says(found, given, expected):
    assert step(found, **given) == expected


def test_nothing_is_drafted_of_what_is_up_to_date():
    # A strict config may lack an input that no action needs any longer.
    update = fleets.Update(
        runs=ALL.__contains__, transport='TEMP_URL_POLL', changed=['timeout']
    )
    assert update.task(MEMBER, row(), None, 'UPDATE') is None


def test_without_a_signal_a_repetition_tells_the_server_for_certain():
    # The row is complete as it is written, before the server knows.
    untold = row(transport='NO_SIGNAL')
    assert step(untold, transport='NO_SIGNAL', changed=None) == 'CREATE*'
    assert step(untold, transport='NO_SIGNAL') is None
    for transport, delivers in (('NO_SIGNAL', False), ('CFN_SIGNAL', None)):
        task = fleets.repeated(
            MEMBER,
            row('SUSPEND', transport=transport),
            'SUSPEND',
            repeats=True,
        )
        assert (task and task.delivers) == delivers
