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
        ('actions', 'UPDATE'),
        ('config', 'UPDATE'),
        ('input_values', 'UPDATE'),
        ('name', 'UPDATE'),
        ('timeout', None),
        ('delivery_timeout', None),
        ('signal_url_lifetime', None),
        ('servers', None),
        ('max_failures', None),
        ('trigger_url', None),
        ('trigger_by_servers', None),
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


def test_what_is_unhealthy_runs_update_though_nothing_has_changed():
    for changed in ((), None, ('timeout',)):
        assert step(row(reason=MARKED), changed=changed) == 'UPDATE'
    assert step(row('RESUME', reason=MARKED)) == 'UPDATE'


def test_what_is_unhealthy_and_has_no_update_runs_create():
    assert step(row(reason=MARKED), actions=['CREATE']) == 'CREATE'
    assert step(row(reason=MARKED), actions=['DELETE']) is None


def test_a_repetition_compares_what_servers_were_given():
    assert step(row(), changed=None) is None
    assert step(row(deploy_stack_id='former'), changed=None) is None
    assert step(row(deploy_password='x'), changed=None) is None
    assert step(row(who='moon'), changed=None) == 'UPDATE'
    # What the failed one has changed was not lost with it.
    assert step(row(), changed=None, actions=['CREATE']) is None


def test_after_a_check_servers_are_compared_as_well():
    for changed, given, expected in (
        (['servers'], {}, None),
        (['servers'], {'who': 'moon'}, 'UPDATE'),
        # The action that it has completed may have another config.
        (['config'], {}, 'UPDATE'),
    ):
        found = row(**given)
        assert step(found, changed=changed, is_after_update=False) == expected


def test_what_has_not_completed_is_repeated():
    assert step(row(status='FAILED')) == 'CREATE'
    assert step(row('DELETE')) == 'CREATE'
    for action in ('UPDATE', 'SUSPEND', 'RESUME'):
        assert step(row(action, 'FAILED')) == 'UPDATE'
    # A failed action that the config no longer has runs no other.
    assert step(row('UPDATE', 'FAILED'), actions=['CREATE']) is None


def test_a_server_that_is_at_it_is_waited_for():
    for action in ('CREATE', 'UPDATE'):
        found = row(action, 'IN_PROGRESS')
        assert step(found) == f'{action}*'
        # Not where it cannot answer, or does something else.
        assert step(found, transport='CFN_SIGNAL') == action
        assert step(row(action, 'IN_PROGRESS', who='moon')) == action
    assert step(row('SUSPEND', 'IN_PROGRESS')) == 'UPDATE'


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


def test_what_was_withdrawn_runs_create_where_there_is_no_update():
    found = row('SUSPEND', 'FAILED')
    withdrawn = dataclasses.replace(
        found,
        config=dataclasses.replace(
            found.config, group='heat-plugins-withdrawn'
        ),
    )
    assert step(withdrawn, actions=['CREATE']) == 'CREATE'
    assert step(found, actions=['CREATE']) is None


def test_what_waits_for_heats_own_url_is_delivered_again():
    # Its result lies in another container, where nobody polls.
    found = row('CREATE', 'IN_PROGRESS', transport='TEMP_URL_SIGNAL')
    assert step(found) == 'CREATE'


def test_a_missing_row_is_replaced():
    assert step(None) == 'UPDATE'
    assert step(None, actions=['CREATE']) is None
