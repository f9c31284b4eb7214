# SPDX-License-Identifier: Apache-2.0
"""OS::Mistral::Execution, Environment and Action with a real Mistral."""

import pytest

from tests.functional import flows


@pytest.mark.quick
def test_the_example_runs_on_create_on_each_change_and_on_delete(
    made, mistral
):
    text = (flows.EXAMPLES / 'execution.yaml').read_text()
    stack = made(text)
    assert stack.outputs == {'said': 'Good evening, world!', 'when': 'CREATE'}
    shown = stack.resource('run', 'published', 'state')['attributes']
    assert shown['published'] == {'said': 'Good evening, world!'}
    assert shown['state'] == 'SUCCESS'
    stack.updated(text, name='moon')
    assert stack.outputs == {'said': 'Good evening, moon!', 'when': 'UPDATE'}
    paths = {
        name: f'/{kind}/{stack.resource(name)["physical_resource_id"]}'
        for name, kind in (('greet', 'actions'), ('manners', 'environments'))
    }
    # What the stack has of these changes in place.
    for former, now in (('evening', 'night'), ('name %>!', 'name %>?')):
        assert former in text
        text = text.replace(former, now)
    stack.updated(text, name='moon')
    assert stack.outputs['said'] == 'Good night, moon?'
    assert [*mistral.states().values()] == ['SUCCESS'] * 3
    for name, path in paths.items():
        assert path.endswith(stack.resource(name)['physical_resource_id'])
        assert mistral.session.get(flows.MISTRAL, path).ok
    stack.remove()
    assert mistral.executions() == []
    for path in paths.values():
        assert mistral.session.get(flows.MISTRAL, path).status == 404
