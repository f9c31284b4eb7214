# SPDX-License-Identifier: Apache-2.0
"""What goes wrong around a deployment, and must not become its fate."""

from collections.abc import Callable
from concurrent import futures
import contextlib
import json
import re
import socket
import threading
import time
from typing import Any
import urllib.parse

import pytest

from tests.functional import base
from tests.functional import conftest
from tests.functional.production import waits

#: As conftest.py sets it.
BUDGET = 30

#: The containers' TempURL keys, for a look into the log.
keys_seen: set[str] = set()

#: How the engine introduces itself to Swift.
ENGINE = 'keystoneauth'


def container(stack: base.Stack) -> str:
    return f'/heat-plugins-{stack.id}'


def fault(stack: base.Stack | None = None, **rule: Any) -> base.Template:
    """Return a rule for what the engine asks for, about one stack or all."""
    where = f'.*{container(stack)}.*' if stack else '.*'
    return {'user_agent': ENGINE, 'path': where, **rule}


def signal(deployment: base.Deployment, greeting: str = 'hello') -> None:
    body = {'greeting': greeting, 'deploy_status_code': 0}
    assert deployment.put(json.dumps(body).encode()) == 201


def handed_anew(
    stack: base.Stack,
    before: base.Deployment | None = None,
    name: str = 'deployment',
) -> base.Deployment:
    """Wait until a deployment has been handed to its server again."""

    def found() -> base.Deployment | None:
        now = stack.deployment(name)
        if now is None or now.status != 'IN_PROGRESS':
            return None
        old = before and now.config['id'] == before.config['id']
        return None if old else now

    deployment = base.until(found)
    assert isinstance(deployment, base.Deployment)
    return deployment


def completes(
    stack: base.Stack, action: str = 'CREATE', greeting: str = 'hello'
) -> None:
    stack.wait(f'{action}_COMPLETE')
    assert stack.outputs['deployment_greeting'] == greeting


def put_half(url: str) -> None:
    """Begin to PUT to a URL, and hang up in the middle."""
    parts = urllib.parse.urlsplit(url)
    assert parts.hostname
    with socket.create_connection((parts.hostname, parts.port)) as connection:
        connection.sendall(
            f'PUT {parts.path}?{parts.query} HTTP/1.1\r\n'
            f'Host: {parts.netloc}\r\n'
            'Content-Length: 1000\r\n\r\n{"greeting": "hel'.encode()
        )


@pytest.fixture
def swift(cloud):
    """The object store as the project's members see it."""
    session = cloud.session()

    class Swift:
        def names(self, stack):
            answer = session.get(
                'object-store', f'{container(stack)}?format=json'
            )
            return [one['name'] for one in answer.json() or ()]

        def put(self, stack, name, body):
            path = f'{container(stack)}/{urllib.parse.quote(name)}'
            answer = session.put('object-store', path, body)
            assert answer.ok, answer

        def delete(self, stack):
            """Delete a container and what is in it."""
            for name in self.names(stack):
                path = f'{container(stack)}/{urllib.parse.quote(name)}'
                session.delete('object-store', path)
            answer = session.delete('object-store', container(stack))
            assert answer.status in (204, 404), answer

        def key(self, stack):
            answer = session.request('HEAD', 'object-store', container(stack))
            key = answer.headers.get('X-Container-Meta-Temp-Url-Key')
            if key:
                keys_seen.add(key)
            return key

    return Swift()


@pytest.fixture(scope='module', autouse=True)
def account_key(cloud):
    """A TempURL key of the account, set by somebody for purposes unknown."""
    session = cloud.session()
    name = 'X-Account-Meta-Temp-Url-Key'

    def get():
        return session.request('HEAD', 'object-store').headers.get(name)

    def set_to(key):
        answer = session.post('object-store', headers={name: key})
        assert answer.ok, answer

    set_to('somebody-elses')
    yield
    # Whatever the tests did.
    kept = get()
    set_to('')
    assert kept == 'somebody-elses'


def in_the_background(work: Callable[[], Any]) -> Any:
    """Do something again and again for as long as a block runs."""

    @contextlib.contextmanager
    def block():
        ended = threading.Event()

        def repeat():
            while not ended.is_set():
                work()

        with futures.ThreadPoolExecutor(1) as pool:
            running = pool.submit(repeat)
            try:
                yield
            finally:
                ended.set()
        running.result()

    return block()


# Swift is away


@pytest.mark.quick
def test_ten_seconds_of_503_are_ridden_out(cloud, stacks):
    stack = stacks(base.software())
    deployment = stack.waiting()
    began = time.time()
    with cloud.faults([fault(status=503, until=began + 10)]):
        signal(deployment)
        completes(stack)
    refused = [
        one for one in cloud.swift_requests(began) if one['status'] == 503
    ]
    assert 1 <= len(refused) <= 12
    assert stack.outputs['deployment_greeting'] == 'hello'


@pytest.mark.quick
def test_restart_of_swift_is_ridden_out(cloud, stacks):
    stack = stacks(base.software())
    deployment = stack.waiting()
    cloud.restart('swift')
    signal(deployment)
    completes(stack)


def test_killed_swift_holds_up_create_wait_and_delete(cloud, stacks):
    template = base.software()
    waits, goes = stacks(template), stacks(template)
    deployment = waits.waiting()
    signal(goes.waiting())
    completes(goes)
    cloud.kill('swift')
    try:
        goes.delete()
        comes = stacks(template)
        time.sleep(3)
        for stack in (waits, goes, comes):
            assert stack.status.endswith('IN_PROGRESS')
        assert comes.metadata() == []
    finally:
        cloud.start('swift')
    signal(deployment)
    signal(comes.waiting())
    completes(waits)
    completes(comes)
    goes.wait('DELETE_COMPLETE')


@pytest.mark.quick
@pytest.mark.long
def test_outage_beyond_the_budget_ends_them_with_its_name(
    cloud, stacks, swift
):
    template = base.software()
    waits, goes = stacks(template), stacks(template)
    waits.waiting()
    signal(goes.waiting())
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
    left = f'Cannot clean up container {container(goes)[1:]}, which may remain'
    assert left in log
    # It could not be deleted, as was said.
    swift.delete(goes)
    for stack in (waits, comes):
        stack.update(template)
    for stack in (waits, comes):
        deployment = handed_anew(stack)
        signal(deployment, 'again')
        completes(stack, 'UPDATE', 'again')


def test_signal_that_cannot_be_fetched_at_first_is_fetched_later(
    cloud, stacks
):
    stack = stacks(base.software())
    deployment = stack.waiting()
    began = time.time()
    path = f'.*{container(stack)}/signals/.+'
    rule = fault(method='GET', status=503, until=began + 4)
    with cloud.faults([{**rule, 'path': path}]):
        signal(deployment)
        completes(stack)
    assert [
        one['status']
        for one in cloud.swift_requests(began, method='GET', path=path)
    ][-2:] == [503, 200]


def test_signal_that_cannot_be_deleted_counts_once(cloud, stacks, swift):
    template = base.software()
    stack = stacks(template)
    deployment = stack.waiting()
    with cloud.faults([fault(stack, method='DELETE', status=503)]):
        signal(deployment)
        completes(stack)
        left = swift.names(stack)
        assert len(left) == 1
        stack.update(template, who='moon')
        deployment = stack.waiting(action='UPDATE')
        time.sleep(2)
        assert stack.status == 'UPDATE_IN_PROGRESS'
        signal(deployment, 'moon')
        completes(stack, 'UPDATE', 'moon')
    stack.delete()
    stack.wait('DELETE_COMPLETE')


def test_container_that_is_made_behind_a_500_is_no_trouble(cloud, stacks):
    began = time.time()
    rule = fault(method='PUT', status=500, after=True, count=1)
    with cloud.faults([rule]):
        stack = stacks(base.software())
        signal(stack.waiting())
        completes(stack)
    puts = cloud.swift_requests(
        began, method='PUT', path=f'.*{container(stack)}'
    )
    assert puts[0]['status'] == 500


def test_slow_swift_holds_up_no_other_stack(cloud, stacks):
    slow, quick = stacks(base.software()), stacks(base.software())
    late, prompt = slow.waiting(), quick.waiting()
    listing = {'method': 'GET', 'path': f'.*{container(slow)}'}
    with cloud.faults([{**listing, 'delay': 5}]):
        signal(late)
        # Until the engine is in the middle of it.
        time.sleep(2)
        began = time.monotonic()
        signal(prompt)
        completes(quick)
        assert time.monotonic() - began < 5
        completes(slow)


@pytest.mark.timeout(300)
def test_swift_that_takes_five_seconds_for_everything_is_waited_for(
    cloud, stacks
):
    with cloud.faults([fault(delay=5)]):
        stack = stacks(base.software())
        signal(stack.waiting(seconds=120))
        stack.wait('CREATE_COMPLETE', 120)
        stack.delete()
        stack.wait('DELETE_COMPLETE', 120)


# Swift is there, and says something else


@pytest.mark.quick
def test_half_a_signal_is_none_and_the_whole_one_counts(cloud, stacks, swift):
    stack = stacks(base.software())
    deployment = stack.waiting()
    put_half(deployment.signal_url)
    time.sleep(2)
    assert swift.names(stack) == []
    assert stack.status == 'CREATE_IN_PROGRESS'
    signal(deployment)
    completes(stack)


@pytest.mark.quick
def test_signal_that_the_listing_does_not_show_is_found(cloud, stacks):
    stack = stacks(base.software())
    deployment = stack.waiting()
    hidden = fault(hide_from_listing='^signals/')
    with cloud.faults([{**hidden, 'path': f'.*{container(stack)}'}]):
        signal(deployment)
        completes(stack)


@pytest.mark.quick
@pytest.mark.parametrize('seconds', [0, 6])
def test_refused_token_is_renewed(cloud, stacks, seconds):
    stack = stacks(base.software())
    deployment = stack.waiting()
    began = time.time()
    limit = {'until': began + seconds} if seconds else {'count': 1}
    with cloud.faults([fault(stack, status=401, **limit)]):
        base.until(
            lambda: any(
                one['status'] == 401 for one in cloud.swift_requests(began)
            )
        )
        signal(deployment)
        completes(stack)


def test_token_that_is_refused_for_a_time_delays_the_hand_over(cloud, stacks):
    path = '.*/heat-plugins-[^/]+'
    began = time.time()
    until = began + 10
    with cloud.faults([{'path': path, 'status': 401, 'until': until}]):
        stack = stacks(base.software())
        waiting = stack.waiting()
        assert time.time() >= until
        refused = cloud.swift_requests(began, path=path)
        assert 401 in [one['status'] for one in refused]
        signal(waiting)
        completes(stack)


@pytest.mark.quick
@pytest.mark.parametrize('content', ['nothing', 'a signal'])
def test_container_that_is_deleted_is_made_again(
    cloud, stacks, swift, content
):
    stack = stacks(base.software())
    deployment = stack.waiting()
    key = swift.key(stack)
    assert key
    with cloud.faults([fault(stack, status=503)]):
        if content == 'a signal':
            signal(deployment, 'lost')
        swift.delete(stack)
    base.until(lambda: swift.key(stack) == key)
    assert stack.status == 'CREATE_IN_PROGRESS'
    # The server sends it again, to the URL that it has.
    signal(deployment)
    completes(stack)


def test_what_others_put_into_the_container_is_no_signal(cloud, stacks, swift):
    stack = stacks(base.software())
    deployment = stack.waiting()
    body = b'{"greeting": "from a stranger"}'
    config_id = deployment.config['id']
    for name in (
        'stray',
        'signals/stray',
        f'signals/{deployment.id}',
        f'signals/{deployment.id}/stray',
        f'signals/{deployment.id}/{config_id}0',
        f'signals/{deployment.id}/{config_id}/0',
        f'signals/{config_id}/{deployment.id}',
        'signals/Grüße%20?',
    ):
        swift.put(stack, name, body)
    time.sleep(3)
    assert stack.status == 'CREATE_IN_PROGRESS'
    signal(deployment)
    completes(stack)
    stack.delete()
    stack.wait('DELETE_COMPLETE')


def test_signals_that_keep_coming_do_not_keep_a_stack(cloud, stacks):
    stack = stacks(base.software(deployments=3))
    urls = [stack.waiting(f'deployment{n}').signal_url for n in range(3)]
    numbers = iter(range(10**6))
    answers = set()

    def put():
        answers.add(base.put(urls[next(numbers) % 3], b'{}'))

    with contextlib.ExitStack() as stacked:
        for _ in range(2):
            stacked.enter_context(in_the_background(put))
        time.sleep(0.5)
        stack.delete()
        stack.wait('DELETE_COMPLETE')
    assert 201 in answers
    if conftest.STORE == 'rgw':
        # The key is the account's and stays, so they may keep the container.
        _remove(cloud.session(), f'/heat-plugins-{stack.id}')


def _remove(session, container):
    listing = session.get('object-store', f'{container}?format=json')
    for one in listing.json() if listing.ok else ():
        session.delete('object-store', f'{container}/{one["name"]}')
    session.delete('object-store', container)


# The engine is away


@pytest.mark.quick
def test_stacks_of_a_killed_engine_can_be_updated_and_deleted(cloud, stacks):
    template = base.software()
    stack, gone = stacks(template), stacks(template)
    old = stack.waiting()
    gone.waiting()
    cloud.kill('heat')
    cloud.start('heat')
    gone.delete()
    stack.update(template)
    # The server has it, and does not run it again.
    signal(old)
    completes(stack, 'UPDATE')
    assert [one['id'] for one in stack.metadata()] == [old.config['id']]
    gone.wait('DELETE_COMPLETE')


def test_stack_of_a_restarted_engine_can_be_updated(cloud, stacks):
    template = base.software()
    stack = stacks(template)
    old = stack.waiting()
    cloud.restart('heat')
    stack.update(template)
    # The server has it, and does not run it again.
    signal(old)
    completes(stack, 'UPDATE')
    assert [one['id'] for one in stack.metadata()] == [old.config['id']]


# Several things at once


@pytest.mark.quick
def test_of_signals_by_several_ways_one_counts(cloud, stacks):
    """Each of five deployments is signalled in three ways at one time."""
    count = 5
    stack = stacks(base.software(deployments=count))
    session = cloud.session()
    barrier = threading.Barrier(3 * count, timeout=30)
    waiting = {
        f'deployment{n}': stack.waiting(f'deployment{n}') for n in range(count)
    }

    def by_temp_url(name):
        barrier.wait()
        waiting[name].put(json.dumps(outputs('url')).encode())

    def by_resource_signal(name):
        barrier.wait()
        stack.signal(name, outputs('signal'))

    def by_rest(name):
        barrier.wait()
        answer = session.put(
            'orchestration',
            f'/software_deployments/{waiting[name].id}',
            {
                'status': 'COMPLETE',
                'status_reason': 'By hand',
                'output_values': outputs('rest'),
            },
        )
        assert answer.ok, answer

    def outputs(way):
        return {'greeting': way, 'deploy_stdout': way}

    with futures.ThreadPoolExecutor(3 * count) as pool:
        for running in [
            pool.submit(way, name)
            for name in waiting
            for way in (by_temp_url, by_resource_signal, by_rest)
        ]:
            running.result()
    stack.wait('CREATE_COMPLETE')
    first = stack.outputs
    for name in waiting:
        assert first[f'{name}_greeting'] in ('url', 'signal', 'rest')
        assert first[f'{name}_deploy_stdout'] == first[f'{name}_greeting']
        ended = [
            one['resource_status']
            for one in stack.events(name)
            if one['resource_status'] != 'CREATE_IN_PROGRESS'
        ]
        assert ended.count('CREATE_COMPLETE') == 1
        assert 'CREATE_FAILED' not in ended
    # What lost the race is not taken up later.
    time.sleep(2)
    assert stack.outputs == first


def test_a_stack_that_is_updated_while_signals_arrive_is_updated(stacks):
    template = waits.template()
    stack = stacks(template)
    before = waits.all_wait(stack)
    with futures.ThreadPoolExecutor(1 + waits.COUNT) as pool:
        updating = pool.submit(stack.update, template, who='moon')
        for deployment in before.values():
            pool.submit(deployment.put, waits.body('for the world'))
            time.sleep(0.2)
        updating.result()
    waits.answer(stack)
    stack.wait('UPDATE_COMPLETE')
    # The answer to another action is never taken for that of this one.
    assert waits.answers(stack) == dict(
        zip(waits.NAMES, waits.NAMES, strict=True)
    )
    for name in waits.NAMES:
        found = stack.deployment(name)
        assert found.inputs['who'] == 'moon'
        # Nor is one updated twice, and the stack complete before.
        assert found.status == 'COMPLETE'


def test_deployment_may_go_while_its_signal_arrives(stacks):
    stack = stacks(base.software(deployments=4))
    going = [stack.waiting(f'deployment{n}') for n in range(1, 4)]
    stay = stack.waiting('deployment0')
    template = base.software(deployments=4)
    for name in ('deployment1', 'deployment2', 'deployment3', 'end'):
        del template['resources'][name]
    template['outputs'] = {
        'deployment_greeting': template['outputs']['deployment0_greeting']
    }
    with futures.ThreadPoolExecutor(4) as pool:
        updating = pool.submit(stack.update, template)
        for number, deployment in enumerate(going):
            pool.submit(time.sleep, number / 5).result()
            pool.submit(deployment.put, b'{}')
        updating.result()
    signal(stay)
    completes(stack, 'UPDATE')


@pytest.mark.quick
def test_row_that_a_user_deletes_ends_the_wait(cloud, stacks):
    stack = stacks(base.software(deployments=2))
    rows = [stack.waiting(f'deployment{n}') for n in range(2)]
    with futures.ThreadPoolExecutor(3) as pool:
        pool.submit(rows[1].put, b'{}')
        for row in rows:
            pool.submit(
                cloud.session().delete,
                'orchestration',
                f'/software_deployments/{row.id}',
            )

    def ended():
        found = stack.resources()
        states = [found[f'deployment{n}']['resource_status'] for n in range(2)]
        return None if 'CREATE_IN_PROGRESS' in states else states

    states = base.until(ended)
    # The signal of the other may have been faster, or not.
    assert states[0] == 'CREATE_FAILED'
    assert (
        'withdrew' in stack.resource('deployment0')['resource_status_reason']
    )


# After all this


@pytest.mark.quick
def test_log_holds_no_secret(cloud, stacks, swift):
    # Whichever tests came before on this cloud, one deployment has.
    stack = stacks(base.software())
    signal(stack.waiting())
    key = swift.key(stack)
    assert key or conftest.STORE == 'rgw'
    completes(stack)
    log = cloud.log('heat').read_text('utf-8', 'replace')
    assert 'waits for a signal' in log
    assert not re.findall(r'temp_url_sig=(?!\*\*\*).{12}', log)
    assert not re.findall(r'(?i)x-auth-token\W+(?!\{SHA256\})\w{20}', log)
    secrets = json.loads((cloud.path / 'instance.json').read_text())['secrets']
    assert {'demo', 'heat', 'auth_encryption_key'} <= set(secrets)
    for secret in (*secrets.values(), *keys_seen, 'somebody-elses'):
        assert secret not in log
