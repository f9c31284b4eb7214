# SPDX-License-Identifier: Apache-2.0
"""What goes wrong around a deployment, and must not become its fate."""

import socket
import time
import urllib.parse

import pytest

from tests.functional import base

#: As conftest.py sets it.
BUDGET = 30

#: How the engine introduces itself to Swift.
ENGINE = 'keystoneauth'


def fault(stack=None, **rule):
    """Return a rule for what the engine asks for, about one stack or all."""
    where = f'.*{stack.container}.*' if stack else '.*'
    return {'user_agent': ENGINE, 'path': where, **rule}


def completes(stack, action='CREATE', greeting='hello'):
    stack.wait(f'{action}_COMPLETE')
    assert stack.outputs['deployment_greeting'] == greeting


def put_half(url):
    """Begin to PUT to a URL, and hang up in the middle."""
    parts = urllib.parse.urlsplit(url)
    assert parts.hostname
    with socket.create_connection((parts.hostname, parts.port)) as connection:
        connection.sendall(
            f'PUT {parts.path}?{parts.query} HTTP/1.1\r\n'
            f'Host: {parts.netloc}\r\n'
            'Content-Length: 1000\r\n\r\n{"greeting": "hel'.encode()
        )


@pytest.mark.quick
@pytest.mark.long
def test_outage_beyond_the_budget_ends_them_with_its_name(cloud, stacks):
    template = base.software()
    waits, goes = stacks(template), stacks(template)
    waits.waiting()
    goes.waiting().answer(greeting='hello')
    completes(goes)
    since = time.time()
    with cloud.faults([fault(status=503)]):
        goes.delete()
        comes = stacks(template)
        for stack in (waits, comes):
            stack.wait('CREATE_FAILED')
            assert 'The object store answered 503' in stack.reason
            assert stack.metadata() == []
        # What was withdrawn stays, with the reason; the other never was there.
        assert waits.deployment().status == 'FAILED'
        assert comes.deployment() is None
        assert BUDGET <= time.time() - since < BUDGET + 20
        goes.wait('DELETE_COMPLETE')
    log = cloud.log('heat').read_text('utf-8', 'replace')
    left = f'Cannot clean up container {goes.container[1:]}, which may remain'
    assert left in log
    # It could not be deleted, as was said.
    base.delete_container(cloud.session(), goes.container[1:])
    for stack in (waits, comes):
        stack.update(template)
    # The one was delivered before, the other never.
    for stack in (waits, comes):
        deployment = base.until(
            lambda stack=stack: (
                (found := stack.deployment())
                and found.status == 'IN_PROGRESS'
                and found
            )
        )
        deployment.answer(greeting='again')
        completes(stack, 'UPDATE', 'again')


@pytest.mark.quick
@pytest.mark.long
def test_passing_faults_are_ridden_out(cloud, stacks):
    swift, template = cloud.session(), base.software()
    stack = stacks(template)

    def waits(who):
        """Return what an update waits for."""
        stack.update(template, who=who)
        return stack.waiting(action='UPDATE')

    # Seconds of 503.
    deployment = stack.waiting()
    began = time.time()
    with cloud.faults([fault(status=503, until=began + 8)]):
        deployment.answer(greeting='hello')
        completes(stack)
    requests = cloud.swift_requests(began)
    assert 1 <= sum(one['status'] == 503 for one in requests) <= 12
    # Half a signal is none, and the whole one counts.
    deployment = waits('half')
    put_half(deployment.signal_url)
    time.sleep(2)
    listing = swift.get('object-store', stack.container).body
    assert listing == b''
    assert stack.status == 'UPDATE_IN_PROGRESS'
    deployment.answer(greeting='whole')
    completes(stack, 'UPDATE', 'whole')
    # A listing does not show it.
    deployment = waits('hidden')
    hidden = fault(hide_from_listing='^signals/')
    with cloud.faults([{**hidden, 'path': f'.*{stack.container}'}]):
        deployment.answer(greeting='hidden')
        completes(stack, 'UPDATE', 'hidden')
    # A token is refused, and renewed.
    deployment = waits('refused')
    began = time.time()
    with cloud.faults([fault(stack, status=401, until=began + 6)]):
        base.until(
            lambda: any(
                one['status'] == 401 for one in cloud.swift_requests(began)
            )
        )
        deployment.answer(greeting='renewed')
        completes(stack, 'UPDATE', 'renewed')
    # A container that is deleted is made again.
    deployment = waits('lost')

    def key():
        answer = swift.request('HEAD', 'object-store', stack.container)
        return answer.headers.get('X-Container-Meta-Temp-Url-Key')

    before = key()
    assert before
    with cloud.faults([fault(stack, status=503)]):
        deployment.answer(greeting='lost')
        base.delete_container(swift, stack.container[1:])
    base.until(lambda: key() == before)
    assert stack.status == 'UPDATE_IN_PROGRESS'
    # The server sends it again, to the URL that it has.
    deployment.answer(greeting='again')
    completes(stack, 'UPDATE', 'again')
