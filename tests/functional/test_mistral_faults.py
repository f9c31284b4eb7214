# SPDX-License-Identifier: Apache-2.0
"""A real Mistral that fails on order, or is away."""

from tests.functional import flows
from tests.functional import mistral_proxy

Fault = mistral_proxy.Fault


def test_passing_errors_of_mistral_are_ridden_out(made, mistral):
    done = True
    with mistral.failing(
        Fault('GET', '/workflows', 1),
        Fault('POST', '/workflows\\?', 1, done),
        Fault('POST', '/executions', 1, done),
    ):
        stack = made(flows.template())
        stack.signal('workflow', {})
        assert flows.signalled(stack)['error'] is None
    assert flows.finished(stack)['state'] == 'SUCCESS'
    assert len(stack.outputs['executions']) == 1
    with mistral.failing(
        Fault('PUT', '/workflows', 1, done),
        Fault('POST', '/workflows\\?', 1, done),
    ):
        stack.update(flows.template(f'{flows.ECHO}more:\n  {flows.NOOP}\n'))
        stack.wait('UPDATE_COMPLETE')
    with mistral.failing(
        Fault('GET', '/executions', 1),
        Fault('DELETE', '/executions', 1, done),
        Fault('DELETE', '/workflows', 1, done),
    ):
        stack.delete()
        stack.wait('DELETE_COMPLETE')


def test_mistral_that_stays_away_leaves_nothing_half_made(made, mistral):
    with mistral.failing(Fault('POST', '/workflows\\?', 99)):
        stack = made(flows.template(), status='CREATE_FAILED')
    assert 'Mistral answers 503' in stack.reason
    assert f'{stack.name}.workflow.echo' not in mistral.names()
    # The same resource gets what it lacks, under the same name.
    stack.update(flows.template())
    stack.wait('UPDATE_COMPLETE')
    assert stack.outputs['available_workflows'] == {
        'echo': f'{stack.name}.workflow.echo'
    }
    stack.signal('workflow', {})
    assert flows.finished(stack)['state'] == 'SUCCESS'
    with mistral.failing(
        Fault('PUT', '/workflows', 99), Fault('POST', '/executions', 99)
    ):
        stack.signal('workflow', {})
        stack.update(flows.template(f'{flows.ECHO}more:\n  {flows.NOOP}\n'))
        failed = flows.signalled(stack, count=2)
        stack.wait('UPDATE_FAILED')
    assert f'{stack.name}.workflow.more' not in mistral.names()
    assert failed['error'].startswith('Mistral answers 503')
    assert (
        'SIGNAL_FAILED',
        f'Signal failed: {failed["error"]}',
    ) in flows.events(stack)
