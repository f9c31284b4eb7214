# SPDX-License-Identifier: Apache-2.0
"""How a deployment waits for its signal, and what it makes of it."""

import json
from unittest import mock

from heat.engine import check_resource
from heat.engine import scheduler

from heat_plugins import heat_values
from heat_plugins.engine import hubs
from heat_plugins.engine import server_fleets
from heat_plugins.engine.database import rows
from heat_plugins.signals import body
from tests.unit import fake_swift
from tests.unit.resources import deployments

KEY = 'x-account-meta-temp-url-key'


class WaitingTest(deployments.DeploymentTestCase):
    def setUp(self):
        super().setUp()
        self.heat.auth.endpoints['cloudformation'] = deployments.CFN

    def told(self, stack, kind):
        told = deployments.events(stack)
        return [e for e in told if heat_values.event_kind(e) is kind]

    def given(self):
        return deployments.inputs(self.handed[-1])

    def test_a_server_reports_its_start_and_has_its_time(self):
        started = heat_values.EventKind.STARTED
        self.configure(known_hooks=['terraform'])
        config = {'group': 'terrafrom'}
        whole = deployments.template(config=config, timeout=60)
        stack, task = self.waiting(whole)
        begun = self.now - 9
        (event,) = self.told(stack, heat_values.EventKind.UNKNOWN_HOOK)
        assert 'Did you mean "terraform"?' in event
        # The report is an object beside the result.
        given = self.given()
        assert given['deploy_signal_timeout'] == '60'
        result, report = (
            given[name].partition('?')[0]
            for name in ('deploy_signal_id', 'deploy_progress_url')
        )
        assert report == f'{result}.progress'
        assert self.told(stack, started) == []
        for content in (b'{}', b'{"message": "half of it"}'):
            self.swift.put_signed(given['deploy_progress_url'], content)
            self.step(task, 10)
        said = ['Started: CREATE on server server']
        assert self.told(stack, started) == said
        (row,) = self.deployment_rows()
        said = 'The server has started the action [hp:started]'
        assert row.status_reason == said
        reason = self.failed(task, stack)
        assert 60 <= self.now - begun < 65
        for said in (
            'has not signalled CREATE within 60 s (property "timeout"',
            'The server reported the start',
            f'{self.handed[0]["id"]}.notify.json',
        ):
            assert said in reason
        self.assert_withdrawn(stack, 'Server server has not signalled CREATE')
        self.assert_nothing_waits()
        self.delete(stack)
        for transport in ('TEMP_URL_POLL', 'CFN_SIGNAL'):
            given = {'config': config, 'signal_transport': transport}
            whole = deployments.template(delivery_timeout=30, **given)
            stack, task = self.waiting(whole)
            before = self.now
            reason = self.failed(task, stack)
            assert 'within 30 s (property "delivery_timeout")' in reason
            assert 'heat-agents have no hook "terrafrom"' in reason
            assert self.now - before < 40
            assert self.in_metadata(stack) == []
            self.delete(stack)

    def test_signals_of_heats_api_count_once_by_any_transport(self):
        for transport in ('TEMP_URL_POLL', 'HEAT_SIGNAL', 'CFN_SIGNAL'):
            whole = deployments.template(signal_transport=transport)
            stack, task = self.waiting(whole)
            resource = self.heat.load(stack)['deployment']
            if transport != 'TEMP_URL_POLL':
                report = {body.REPORT: {}, body.CONFIG_ID: 'of another'}
                for config_id in ('of another', self.handed[-1]['id']):
                    resource.signal({**report, body.CONFIG_ID: config_id})
                    assert not self.step(task, 9)
                assert self.told(stack, heat_values.EventKind.STARTED) == [
                    'Signal: Started: CREATE on server server'
                ]
            resource.signal({'answer': 'first'})
            resource.signal({'answer': 'second'})
            self.finish(task, 20)
            assert stack.status == 'COMPLETE'
            assert stack['deployment'].FnGetAtt('answer') == 'first'
            self.delete(stack)
        # One before a cancellation stays; one after it is ignored.
        stack, task = self.waiting()
        stack['deployment'].signal({'answer': 'x'})
        task.cancel()
        (row,) = self.deployment_rows()
        assert row.status == 'COMPLETE'
        self.delete(stack)
        whole = deployments.template(signal_transport='HEAT_SIGNAL')
        stack, task = self.waiting(whole)
        task.cancel()
        stack['deployment'].signal({'answer': 'late'})
        self.assert_withdrawn(stack)
        assert stack['deployment'].FnGetAtt('answer') is None

    def test_what_is_cancelled_is_taken_from_the_server(self):
        for told in (200, 404):
            stack, task = self.waiting()
            assert len(self.in_metadata(stack)) == 1
            url = self.given()['deploy_control_url']
            assert self.swift.get_signed(url)[0] == 404
            if told == 404:
                # A store that cannot tell it does not keep it there.
                self.swift.fail(10**6, method='PUT')
            task.cancel()
            self.assert_withdrawn(stack, 'was cancelled')
            self.assert_nothing_waits()
            assert self.swift.get_signed(url)[0] == told
            self.swift.heal()
            self.delete(stack)
        stack, task = self.waiting()
        self.heat.stop(stack)
        self.finish(task, 5)
        assert 'CREATE was cancelled' in stack.status_reason
        self.assert_withdrawn(stack, 'was cancelled')

    def test_an_outage_of_store_and_database_is_ridden_out(self):
        stack, task = self.waiting()
        self.break_database(rows, 'settle', 3)
        self.swift.locked_out.add(deployments.PROJECT)
        assert not self.step(task, 30)
        self.swift.locked_out.clear()
        # A container that is gone comes back with its key.
        name = f'heat-plugins-{stack.id}'
        self.swift.store(deployments.PROJECT).delete_container(name)
        # Swift says 401 for what is not there, as for a wrong signature.
        assert self.send(self.handed[0]) in (401, 404)
        assert not self.step(task, 60)
        # A result that cannot be deleted counts all the same.
        self.swift.fail(1, 503, 'DELETE')
        assert self.send(self.handed[0], {'answer': '42'}) == 201
        self.finish(task, 60)
        assert stack.status == 'COMPLETE'
        assert stack['deployment'].FnGetAtt('answer') == '42'
        self.delete(stack)
        self.assert_nothing_left()

    def test_many_share_one_listing_and_one_query_and_nothing_else(self):
        parts = {
            f'other{number}': deployments.deployment() for number in range(7)
        }
        self.answer = None
        stack = self.heat.stack(deployments.template(resources=parts))
        task = self.heat.begin(stack, 'CREATE')
        self.step(task, 160)
        assert len(self.handed) == 8
        # Of many URLs only the first asks the store for anything.
        assert [one.method for one in self.swift.seen].count('PUT') == 1
        assert self.swift.asked().count('GET /info') == 1
        calls, tokens = len(self.heat.rpc.calls), self.heat.auth.tokens
        seen = len(self.swift.seen)
        with self.counting_queries() as statements:
            for _ in range(40):
                self.now += 1
                assert not task.step()
        assert len(self.heat.rpc.calls) == calls
        assert self.heat.auth.tokens == tokens
        looks = self.swift.seen[seen:]
        # A container with a key of its own is not probed.
        assert {each.method for each in looks} == {'GET'}
        listings = [each for each in looks if 'prefix' in each.query]
        # The interval has grown to 5 s.
        assert len(listings) in (7, 8, 9)
        # Of objects that may come, it asks for each now and then by name.
        peeks = [each for each in looks if each not in listings]
        assert all('/signals/' in each.where for each in peeks), peeks
        # And seldom, whether the stack is to be cancelled.
        queries = [each for each in statements if 'FROM stack ' not in each]
        assert len(queries) <= len(listings), queries
        assert len(statements) - len(queries) <= 40 / 3 + 1

    def test_an_action_with_its_own_thread_blocks_until_there_is_news(self):
        stack = self.created()
        other, asked = self.moon(stack), []

        def check(ask=lambda: None, timeout=3600):
            found = self.checked(stack, stack['deployment'].id)
            self.heat.waited = 0
            found.update_convergence(
                other.t.id, set(), 'engine', timeout, other, ask
            )
            return found

        def cancel():
            asked.append(self.now)
            if len(asked) > 20:
                raise check_resource.CancelOperation

        self.answer = None
        self.assertRaises(check_resource.CancelOperation, check, cancel)
        # Heat is asked each second, and no more often.
        self.assertAlmostEqual(20, asked[-1] - asked[0], delta=5)
        assert self.now - asked[-1] <= 1
        self.assert_nothing_waits()
        assert self.in_metadata(stack) == []
        # Heat's own clock, which does not stand still.
        begun = self.now
        with mock.patch(
            'heat.common.timeutils.Duration.expired',
            side_effect=lambda: self.now >= begun + 50,
        ):
            self.assertRaises(scheduler.Timeout, check, timeout=50)
        assert self.now - begun <= 52
        self.assert_nothing_waits()
        number, answered = len(self.handed), self.now + 20.3

        def send():
            if self.now >= answered and len(self.handed) > number:
                self.meanwhile = lambda: None
                self.send(self.handed[-1])

        self.meanwhile = send
        assert check().status == 'COMPLETE'
        assert 0 <= self.now - answered <= 1
        assert self.heat.waited == 0


class ChangedKeyTest(deployments.DeploymentTestCase):
    """The account's key is changed while a server has a URL of it."""

    def test_under_auto_the_action_is_delivered_again(self):
        self.swift = fake_swift.ceph(fake_swift.CEPH_ACCOUNT)
        whole = deployments.template(signal_transport='AUTO')
        stack, task = self.waiting(whole)
        del self.swift.seen[:]
        self.step(task, 300)
        probes = [one for one in self.swift.seen if one.method == 'HEAD']
        assert len(probes) in range(5, 11)
        assert all(one.signed for one in probes)
        # A store that is away changes nothing.
        self.swift.fail(1000, 503, 'HEAD')
        self.step(task, 100)
        assert len(self.handed) == 1
        self.swift.heal()
        account = self.swift.account(deployments.PROJECT)
        former, account[KEY] = account[KEY], 'somebody else'
        assert self.send(self.handed[0]) == 403
        self.step(task, 70)
        assert len(self.handed) == 2
        assert len(self.in_metadata(stack)) == 1
        [event] = [e for e in deployments.events(stack) if 'TempURL key' in e]
        assert 'delivers the action again' in event
        # Another engine resumes under a former key that stays valid: the
        # server answers with what it has.
        account[f'{KEY}-2'], account[KEY] = account[KEY], former
        self.dies(stack)
        hubs.HUBS.kept.clear()
        again = self.heat.load(stack)
        task = self.heat.begin(again, 'UPDATE', whole)
        self.step(task, 70)
        assert self.actions() == ['CREATE', 'CREATE']
        assert self.send(self.handed[1], {'answer': 'new'}) == 201
        self.finish(task)
        assert again.status == 'COMPLETE'
        assert again['deployment'].FnGetAtt('answer') == 'new'
        self.delete(again)
        assert self.deployment_rows() == []
        assert self.swift.containers == {}


EMPTY = {'heat_template_version': '2021-04-16'}
SECRET = 'hunter2 "quoted"'
PARAMETERS = {
    'password': {'type': 'string', 'hidden': True},
    'tokens': {'type': 'json', 'hidden': True, 'default': {'a': 'tok-en-1'}},
    'user': {'type': 'string', 'default': 'root-user'},
}


class HiddenTest(deployments.DeploymentTestCase):
    """What a server sends of hidden parameters is masked, and stored so."""

    def test_hidden_parameters_are_masked_in_what_is_stored_and_told(self):
        whole = deployments.template(
            input_values={
                'plain': {'get_param': 'user'},
                'secret': {'get_param': 'password'},
                'url': {
                    'str_replace': {
                        'template': 'mysql://root-user:PW@db',
                        'params': {'PW': {'get_param': 'password'}},
                    }
                },
                'map': {'get_param': 'tokens'},
            }
        )
        whole['parameters'] = PARAMETERS
        for transport in ('TEMP_URL_POLL', 'HEAT_SIGNAL'):
            part = whole['resources']['deployment']['properties']
            part['signal_transport'] = transport
            stack = self.heat.stack(
                whole, transport, parameters={'password': SECRET}
            )
            _, task = self.waiting(stack=stack)
            # As a hook that has crashed, with all that it was given.
            config = self.handed[-1]
            given = deployments.inputs(config)
            said = f'{given!r}\n{json.dumps(given)} {SECRET}'
            answer = {'deploy_status_code': 3, 'deploy_stderr': said}
            answer['deploy_stdout'] = f'{given["url"]} {given["plain"]}'
            answer['answer'] = given['secret']
            if transport == 'HEAT_SIGNAL':
                stack['deployment'].signal(answer)
            else:
                self.send(config, answer)
            reason = self.failed(task, stack)
            rows = {each.id: each for each in self.deployment_rows()}
            found = rows[stack['deployment'].resource_id].output_values
            assert found['deploy_stdout'] == (
                'mysql://root-user:******@db root-user'
            )
            shown = stack['deployment'].FnGetAtt('deploy_stderr')
            assert shown == found['deploy_stderr']
            assert 'root-user' in shown
            if transport == 'TEMP_URL_POLL':
                assert 'temp_url_sig=***' in shown
            for text in (shown, reason, *deployments.events(stack)):
                for secret in ('hunter2', 'tok-en-1'):
                    assert secret not in text
            assert '******' in reason
            # Neither an output that the config declares nor what the server
            # gets.
            assert found['answer'] == given['secret'] == SECRET
            assert 'hunter2' not in json.dumps(config['options'])
        # Values that a stack hands down are known below it.
        number = {'type': 'number', 'hidden': True, 'default': 123456}
        missing = {'type': 'string', 'hidden': True}
        own, owner_id = {'own': number, 'missing': missing}, None
        for name, parameters in (('a', PARAMETERS), ('b', {}), ('c', own)):
            stack = self.heat.stack(
                {**EMPTY, 'parameters': parameters},
                name=name,
                parameters={'password': SECRET},
                owner_id=owner_id,
            )
            owner_id = stack.id
        assert {*server_fleets.hidden_values(stack)} == {
            *(SECRET, 'tok-en-1', '123456')
        }
