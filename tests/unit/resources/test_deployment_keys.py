# SPDX-License-Identifier: Apache-2.0
"""The account's key is changed while a server has a URL of the former one."""

import uuid

from heat_plugins.engine import hubs
from tests.unit import fake_swift
from tests.unit.resources import deployments

KEY = 'x-account-meta-temp-url-key'

AUTO = deployments.template(signal_transport='AUTO')


class ChangedKeyTest(deployments.DeploymentTestCase):
    def setUp(self):
        super().setUp()
        self.swift = fake_swift.ceph(fake_swift.CEPH_ACCOUNT)

    def account(self):
        return self.swift.account(deployments.PROJECT)

    def change(self):
        """Change the account's key, as somebody else does."""
        self.former = self.account()[KEY]
        self.account()[KEY] = 'somebody else'

    def events(self, stack):
        return [
            one for one in deployments.events(stack) if 'TempURL key' in one
        ]

    def test_under_auto_the_action_is_delivered_again(self):
        stack, task = self.waiting(AUTO)
        self.change()
        assert self.send(self.handed[0]) == 403
        self.step(task, 70)
        assert len(self.handed) == 2
        assert len(self.in_metadata(stack)) == 1
        [event] = self.events(stack)
        assert 'delivers the action again' in event
        assert self.send(self.handed[1], {'answer': 'new'}) == 201
        self.finish(task)
        assert stack.status == 'COMPLETE'
        assert stack['deployment'].FnGetAtt('answer') == 'new'
        self.delete(stack)
        assert self.deployment_rows() == []
        assert self.swift.containers == {}

    def test_another_engine_resumes_under_a_former_key_that_stays_valid(self):
        stack, task = self.waiting(AUTO)
        self.addCleanup(task.cancel)
        self.change()
        self.account()[f'{KEY}-2'] = self.former
        again = self.heat.load(stack)
        again['deployment'].state_set('CREATE', 'FAILED', 'Engine has died')
        again.state_set('CREATE', 'FAILED', 'Engine has died')
        again.persist_state_and_release_lock(uuid.uuid4().hex)
        hubs.HUBS.clear()
        task = self.heat.begin(self.heat.load(stack), 'UPDATE', AUTO)
        # Its server keeps what it has, and answers with that.
        self.step(task, 70)
        assert len(self.handed) == 1
        assert self.send(self.handed[0]) == 201
        self.finish(task)

    def test_a_probe_is_seldom_and_shared(self):
        more = {f'm{number}': deployments.deployment() for number in range(4)}
        _, task = self.waiting(deployments.template(resources=more))
        self.step(task, 60)
        del self.swift.seen[:]
        self.step(task, 300)
        probed = [one for one in self.swift.seen if one.method == 'HEAD']
        assert len(probed) in range(5, 11)
        assert all(one.signed for one in probed)

    def test_a_container_with_a_key_of_its_own_is_not_probed(self):
        self.swift = fake_swift.Cluster()
        _, task = self.waiting()
        del self.swift.seen[:]
        self.step(task, 200)
        assert [one for one in self.swift.seen if one.method == 'HEAD'] == []

    def test_keys_that_go_on_changing_do_not_repeat_it_for_ever(self):
        _, task = self.waiting(AUTO)
        self.step(task, 40)
        # A store that is away changes nothing.
        self.swift.fail(1000, 503, 'HEAD')
        self.step(task, 100)
        assert len(self.handed) == 1
        self.swift.heal()
        for number in range(8):
            self.account()[KEY] = f'key {number}'
            self.step(task, 70)
        assert len(self.handed) == 4
