# SPDX-License-Identifier: Apache-2.0
"""Bodies that no agent sends: each is the matter of its deployment alone.

One stack has a deployment for each body, all of them PUT at the same time,
and one that is signalled as it should be, later. What came of them is looked
at body by body.
"""

from concurrent import futures
import dataclasses
import json
import time

import pytest

from tests.functional import base

#: Stands in each body, and nowhere else.
MARK = 'm4rk-0f-4-s3cret'
DIGITS = '31337' * 16

#: The default of ``[heat_plugins] signal_body_limit``, and what agents
#: themselves send at the most.
LIMIT = 1_000_000
AGENT_LIMIT = 950_000


def of_size(size: int) -> bytes:
    """Return a signal of so many bytes."""
    frame = len(json.dumps({'greeting': MARK}))
    return json.dumps({'greeting': MARK + 'x' * (size - frame)}).encode()


def nested(levels: int) -> bytes:
    return b'{"greeting": %b"%b"%b}' % (
        b'[' * levels,
        MARK.encode(),
        b']' * levels,
    )


#: What fails a deployment, and what its reason names.
REFUSED = {
    'junk': (f'Traceback: {MARK}'.encode(), 'not JSON'),
    'list': (f'[{{"greeting": "{MARK}"}}]'.encode(), 'a list'),
    'string': (f'"{MARK}"'.encode(), 'a string'),
    'number': (DIGITS.encode(), 'a number'),
    'nan': (b'NaN', 'not JSON'),
    'latin-1': (f'{{"greeting": "{MARK} Grüße"}}'.encode('latin-1'), 'UTF-8'),
    'deep': (nested(100), 'nested'),
    'abysmal': (nested(200_000), 'nested'),
    'half-character': (
        f'{{"greeting": "{MARK} \\ud83d"}}'.encode(),
        'an incomplete character',
    ),
    'integer': (b'{"greeting": %b}' % (DIGITS.encode() * 100), 'JSON'),
    'status': (
        f'{{"deploy_status_code": "{MARK}"}}'.encode(),
        'deploy_status_code',
    ),
    'byte-too-many': (of_size(LIMIT + 1), 'larger than 1000000 bytes'),
    'five-megabytes': (of_size(5 * 1024 * 1024), 'larger than 1000000'),
}

#: What completes a deployment, and the output ``greeting`` that it has then.
TAKEN = {
    'empty': (b'', None),
    'null': (b'null', None),
    'no-outputs': (b'{}', None),
    'all-that-an-agent-sends': (of_size(AGENT_LIMIT), ...),
    'all-that-is-allowed': (of_size(LIMIT), ...),
    'nul': (b'{"greeting": "a\\u0000b"}', 'a\0b'),
    'long-integer': (b'{"greeting": %b}' % (b'7' * 4000), int('7' * 4000)),
}

GOOD = 'good'


@dataclasses.dataclass(frozen=True)
class Signalled:
    """A stack after all bodies were PUT.

    :ivar began: when the first was.
    :ivar answers: Swift's, by body.
    :ivar ended: the stack's resources, by name.
    """

    stack: base.Stack
    began: float
    answers: dict[str, int]
    ended: dict[str, base.Template]


@pytest.fixture(scope='module')
def signalled(cloud, module_stacks):
    bodies = {
        **{name: body for name, (body, _) in REFUSED.items()},
        **{name: body for name, (body, _) in TAKEN.items()},
        GOOD: b'{"greeting": "hello", "deploy_status_code": 0}',
    }
    template = base.software()
    template['outputs'] = {}
    deployment = template['resources'].pop('deployment')
    for name in bodies:
        template['resources'][name] = deployment
        template['outputs'][name] = {'value': {'get_attr': [name, 'greeting']}}
    stack = module_stacks(template)
    waiting = {name: stack.waiting(name) for name in bodies}
    began = time.time()

    def put(name):
        return waiting[name].put(bodies[name])

    def ended(names):
        found = stack.resources()
        states = {found[name]['resource_status'] for name in names}
        return None if 'CREATE_IN_PROGRESS' in states else found

    others = [name for name in bodies if name != GOOD]
    with futures.ThreadPoolExecutor(8) as pool:
        answers = dict(zip(others, pool.map(put, others), strict=True))
    base.until(lambda: ended(others))
    # The stack has failed; does what still waits go on?
    time.sleep(5)
    answers[GOOD] = put(GOOD)
    return Signalled(
        stack=stack,
        began=began,
        answers=answers,
        ended=base.until(lambda: ended(bodies)),
    )


def test_swift_takes_them_all(signalled):
    assert set(signalled.answers.values()) == {201}


@pytest.mark.parametrize('name', REFUSED)
def test_body_fails_its_deployment_with_a_short_reason(signalled, name):
    _, cause = REFUSED[name]
    row = signalled.stack.deployment(name)
    assert row.status == 'FAILED'
    assert cause in row.reason
    resource = signalled.ended[name]
    assert resource['resource_status'] == 'CREATE_FAILED'
    assert resource['resource_status_reason'].endswith(row.reason)
    assert len(resource['resource_status_reason']) < 200
    assert row.outputs.get('greeting') is None


@pytest.mark.parametrize('name', TAKEN)
def test_body_completes_its_deployment(signalled, name):
    body, greeting = TAKEN[name]
    if greeting is ...:
        greeting = json.loads(body)['greeting']
    resource = signalled.ended[name]
    assert resource['resource_status'] == 'CREATE_COMPLETE', resource
    assert signalled.stack.deployment(name).status == 'COMPLETE'
    assert signalled.stack.outputs[name] == greeting


def test_what_waits_when_others_have_failed_can_complete(signalled):
    resource = signalled.ended[GOOD]
    assert resource['resource_status'] == 'CREATE_COMPLETE'
    assert signalled.stack.outputs[GOOD] == 'hello'


def test_no_reason_quotes_a_body(signalled):
    stack = signalled.stack
    texts = [stack.reason]
    for name in signalled.answers:
        texts.append(signalled.ended[name]['resource_status_reason'])
        texts += [one['resource_status_reason'] for one in stack.events(name)]
    for name in REFUSED:
        texts.append(stack.deployment(name).reason)
    for text in texts:
        assert MARK not in text
        assert DIGITS not in text


def test_log_quotes_no_body(cloud, signalled):
    log = cloud.log('heat').read_text('utf-8', 'replace')
    assert MARK not in log
    assert DIGITS not in log


def test_each_body_is_fetched_once(cloud, signalled):
    fetched = cloud.swift_requests(
        since=signalled.began,
        method='GET',
        path=f'.*/heat-plugins-{signalled.stack.id}/signals/.*',
    )
    taken = [one for one in fetched if one['status'] == 200]
    assert len(taken) == len(signalled.answers)


def test_all_that_was_taken_is_gone_from_swift(cloud, signalled):
    answer = cloud.session().get(
        'object-store', f'/heat-plugins-{signalled.stack.id}'
    )
    assert answer.status == 204, answer


def test_people_can_look_at_such_a_stack(cloud, signalled):
    # The other commands, such as "stack show", ask what the tests above do.
    name = signalled.stack.name
    failures = cloud.openstack('stack', 'failures', 'list', '--long', name)
    for body in REFUSED:
        assert f'{name}.{body}:' in failures
    assert 'it is not JSON' in failures
    assert MARK not in failures


def test_next_action_of_such_a_stack_works(stacks):
    template = base.software()
    stack = stacks(template)
    assert stack.waiting().put(REFUSED['junk'][0]) == 201
    stack.wait('CREATE_FAILED')
    stack.update(template)
    stack.waiting().put(b'{"greeting": "again"}')
    stack.wait('UPDATE_COMPLETE')
    assert stack.outputs['deployment_greeting'] == 'again'
