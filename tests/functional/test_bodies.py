# SPDX-License-Identifier: Apache-2.0
"""Bodies that no agent sends: each is the matter of its deployment alone."""

import json
import time

from tests.functional import base

#: Stands in each body, and nowhere else.
MARK = 'm4rk-0f-4-s3cret'

#: The default of ``[heat_plugins] signal_body_limit``.
LIMIT = 1_000_000


def of_size(size: int) -> bytes:
    """Return a signal of so many bytes."""
    frame = len(json.dumps({'greeting': MARK}))
    return json.dumps({'greeting': MARK + 'x' * (size - frame)}).encode()


#: What fails a deployment, and what its reason names.
REFUSED = {
    'junk': (f'Traceback: {MARK}'.encode(), 'not JSON'),
    'abysmal': (b'{"greeting": %b}' % (b'[' * 200_000), 'nested'),
    'huge': (of_size(LIMIT + 1), 'larger than 1000000 bytes'),
}

#: What completes a deployment.
TAKEN = {
    'empty': b'',
    'largest': of_size(LIMIT),
    'nul': b'{"greeting": "a\\u0000b"}',
}

GOOD = 'good'


def test_each_body_is_the_matter_of_its_deployment_alone(cloud, stacks):
    bodies = {name: body for name, (body, _) in REFUSED.items()} | TAKEN
    template = base.software()
    template['outputs'] = {}
    deployment = template['resources'].pop('deployment')
    for name in (*bodies, GOOD):
        template['resources'][name] = deployment
        template['outputs'][name] = {'value': {'get_attr': [name, 'greeting']}}
    stack = stacks(template)
    waiting = {name: stack.waiting(name) for name in (*bodies, GOOD)}
    begun = time.time()

    def ended(*names):
        found = stack.resources()
        states = {found[name]['resource_status'] for name in names}
        return None if 'CREATE_IN_PROGRESS' in states else found

    assert {waiting[name].put(bodies[name]) for name in bodies} == {201}
    base.until(lambda: ended(*bodies))
    # The stack has failed; what waits continues.
    assert waiting[GOOD].put(b'{"greeting": "hello"}') == 201
    found = base.until(lambda: ended(*bodies, GOOD))
    for name, (_, cause) in REFUSED.items():
        row = stack.deployment(name)
        assert row.status == 'FAILED'
        assert cause in row.reason
        assert found[name]['resource_status_reason'].endswith(row.reason)
        assert len(found[name]['resource_status_reason']) < 200
    for name in (*TAKEN, GOOD):
        assert found[name]['resource_status'] == 'CREATE_COMPLETE'
    outputs = stack.outputs
    assert (outputs['empty'], outputs['nul']) == (None, 'a\0b')
    assert outputs['largest'] == json.loads(TAKEN['largest'])['greeting']
    assert outputs[GOOD] == 'hello'
    # No person sees a body, and each is fetched once and deleted.
    shown = ('stack', 'failures', 'list', '--long', stack.name)
    events = [str(stack.events(name)) for name in bodies]
    log = cloud.log('heat').read_text('utf-8', 'replace')
    for text in (stack.reason, cloud.openstack(*shown), log, *events):
        assert MARK not in text
    path = f'/heat-plugins-{stack.id}'
    fetched = cloud.swift_requests(begun, 'GET', f'.*{path}/signals/.*')
    taken = [one for one in fetched if one['status'] == 200]
    assert len(taken) == len(waiting)
    assert cloud.session().get('object-store', path).status == 204
