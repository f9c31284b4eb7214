# SPDX-License-Identifier: Apache-2.0
"""Where signals lie; they are found among others, at a bounded cost."""

import testtools

from heat_plugins import errors
from heat_plugins.signals import arrivals
from heat_plugins.signals import body
from heat_plugins.signals import signal_names
from tests.unit import fake_swift


def test_each_deployment_has_a_folder_in_its_root_stacks_container():
    assert signal_names.container('1234') == 'heat-plugins-1234'
    signal = signal_names.signal('abcd', 'c')
    assert signal == f'{signal_names.SIGNALS}abcd/c'
    assert signal.startswith(signal_names.folder('abcd'))
    assert not signal.startswith(signal_names.folder('abc'))


class PollerTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.now = 1000.0
        self.patch(arrivals, 'SPARE', 2000)
        self.cluster = fake_swift.ceph()
        self.store = self.cluster.store()
        self.store.put_container('box', {})
        self.poller = arrivals.Poller('box', lambda: self.now)

    def fill(self, *found):
        objects = self.cluster.container('box').objects
        objects.update(dict.fromkeys(found, b''))

    def junk(self, count):
        self.fill(*(f'signals/!{number:06}' for number in range(count)))

    def signals(self, count):
        return [signal_names.signal(f'd{n:04}', 'c') for n in range(count)]

    def poll(self, wanted):
        before = len(self.cluster.seen)
        self.now += 1
        found = set(self.poller.poll(self.store, wanted)) & set(wanted)
        return found, len(self.cluster.seen) - before

    def test_a_container_as_it_should_be_is_listed(self):
        wanted = self.signals(3)
        self.fill(wanted[1])
        assert self.poll(wanted) == ({wanted[1]}, 1)
        # As many as there may be, in pages of a thousand.
        self.junk(2002)
        assert self.poll(wanted) == ({wanted[1]}, 3)

    def test_an_overfull_one_is_asked_for_what_is_awaited(self):
        self.junk(5000)
        wanted = [*self.signals(2), body.report_name(self.signals(1)[0])]
        with self.assertLogs('heat_plugins.signals', 'WARNING') as log:
            assert self.poll(wanted) == (set(), 6)
        assert 'more than 2003 objects' in log.output[0]
        self.fill(wanted[2])
        assert self.poll(wanted) == ({wanted[2]}, 3)
        self.fill(wanted[1])
        assert self.poll(wanted) == ({wanted[1], wanted[2]}, 3)

    def test_what_a_poll_costs_does_not_grow_with_what_lies_there(self):
        costs = []
        for count in (3500, 10500):
            self.junk(count)
            costs.append([self.poll(self.signals(1000))[1] for _ in range(9)])
            self.now += arrivals.OVERFULL_SECONDS
        assert costs[1] == costs[0]
        assert costs[0][1:] == [arrivals.ONE_BY_ONE] * 8
        assert costs[0][0] <= arrivals.ONE_BY_ONE + 5

    def test_all_are_asked_for_in_turn_and_stay_found_until_they_go(self):
        self.junk(5000)
        wanted = self.signals(220)
        self.fill(*wanted)
        found = [len(self.poll(wanted)[0]) for _ in range(4)]
        assert found == [100, 200, 220, 220]
        self.store.delete_object('box', wanted[0])
        # At its next turn.
        found = [wanted[0] in self.poll(wanted)[0] for _ in range(3)]
        assert not found[-1]

    def test_it_is_listed_again_when_it_has_been_emptied(self):
        self.junk(5000)
        wanted = self.signals(10)
        self.poll(wanted)
        self.cluster.container('box').objects.clear()
        self.fill(wanted[3])
        assert self.poll(wanted)[1] == 10
        self.now += arrivals.OVERFULL_SECONDS
        assert self.poll(wanted) == ({wanted[3]}, 1)

    def test_many_that_wait_may_have_their_signals_listed(self):
        wanted = self.signals(3000)
        self.fill(*wanted)
        assert self.poll(wanted)[0] == set(wanted)

    def test_a_container_that_is_gone_is_told(self):
        self.store.delete_container('box')
        self.assertRaises(errors.NoObject, self.poll, self.signals(1))
