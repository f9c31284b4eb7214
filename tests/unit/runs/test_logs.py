# SPDX-License-Identifier: Apache-2.0
"""What a run prints is read complete and in order."""

import contextlib
import itertools
import tracemalloc
from urllib import parse

import testtools

from heat_plugins import errors
from heat_plugins.objectstore import cleaning
from heat_plugins.objectstore import keys
from heat_plugins.objectstore import stores
from heat_plugins.runs import logs
from heat_plugins.runs import run_objects
from heat_plugins.signals import live
from tests.unit import fake_swift

RUN = '5bd8c0c0-0000-4000-8000-000000000001'
HEAD, RING = 2, 3


def body(offset, content, head=HEAD, ring=RING):
    return b'1 %d %d %d\n' % (offset, head, ring) + content


class Case(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.now = 1_800_000_000.0
        self.cluster = fake_swift.Cluster(clock=lambda: 0)
        # Its clock is wrong, which must not matter.
        self.cluster.now = lambda: self.now - 500_000
        self.store = self.cluster.store()
        self.objects = run_objects.RunObjects(self.store, 'stack', RUN, 0, 1)
        self.container = self.objects.container
        signer = keys.KeyKeeper(
            self.store, secret=None, digests=('sha256',), overlap=None
        ).ensure(self.container)
        given = self.objects.inputs(signer, self.now + 600, 10_000_000)
        self.url = given[live.LOG_INPUT]
        self.reader = self.new_reader()

    def source(self):
        return logs.RunLogs(
            self.store, self.container, f'runs/logs/{RUN}/', lambda: self.now
        )

    def new_reader(self):
        return logs.Reader(self.source(), self.objects.log)


class OneTest(Case):
    def send(self, name, content):
        # A listing holds for a moment.
        self.now += 1
        parts = parse.urlsplit(self.url)
        url = parts._replace(path=parts.path + name).geturl()
        return self.cluster.put_signed(url, content)

    def sent(self, number, content):
        """PUT the content of a slot, by its place in the whole output."""
        offset = number * live.SLOT
        name = live.slot_name(offset, HEAD, RING)
        assert self.send(name, body(offset, content)) == 201

    def slot(self, number):
        return bytes([65 + number % 26]) * live.SLOT

    def slots(self, *numbers):
        for number in numbers:
            self.sent(number, self.slot(number))

    def read(self):
        self.now += 1
        return [(one.left_out, one.content) for one in self.reader.read()]

    def content(self):
        return b''.join(content for _, content in self.read())

    def place(self, number):
        slot = live.slot_name(number * live.SLOT, HEAD, RING)
        return self.container, self.objects.log + slot

    def test_it_begins_and_ends_when_the_server_says_so(self):
        assert self.read() == []
        assert not self.reader.begun
        self.sent(0, b'')
        assert self.read() == []
        assert self.reader.begun
        self.sent(0, self.slot(0))
        self.sent(1, b'end')
        assert not self.reader.finished
        self.send('end', b'%d' % (live.SLOT + 3))
        assert self.slot(0) + b'end' == self.content()
        assert self.reader.finished

    def test_only_what_has_changed_is_fetched_again(self):
        self.sent(0, self.slot(0))
        self.content()
        # What is no output is fetched once, too.
        self.send('000001', b'no header')
        self.send('000002', b'x' * (live.LONGEST + 1))
        assert self.read() == []
        before = len(self.cluster.seen)
        assert self.read() == []
        assert len(self.cluster.seen) - before == 1
        # Until the server corrects it.
        self.sent(1, b'right')
        assert self.content() == b'right'
        # Many of one name in folders are none.
        for number in range(200):
            self.send(f'{number:03d}/000000', body(0, b'%d' % number))
        for _ in range(2):
            before = len(self.cluster.seen)
            self.read()
            assert len(self.cluster.seen) - before <= 2

    def test_an_end_is_put_to_objects_that_keep_arriving(self):
        self.patch(cleaning, 'DROPPED', 2)
        self.patch(cleaning, '_PASSES', 3)
        for number in range(9):
            self.send(f'{number:06d}', b'x')
        place = self.store, self.container, self.objects.log
        self.assertRaises(errors.TooManyObjects, cleaning.delete_below, *place)
        self.send('of-its-own', b'x')
        cleaning.delete_below(*place)
        assert [*cleaning.everything(*place)] == []

    def test_what_the_store_shows_late_or_as_it_was_is_waited_for(self):
        self.sent(0, b'half')
        self.sent(1, b'next')
        self.cluster.lagging.add(self.place(0))
        assert self.read() == []
        self.cluster.lagging.clear()
        assert self.content() == b'half'
        self.sent(0, b'half' + self.slot(0)[4:])
        assert self.slot(0)[4:] + b'next' == self.content()

    def test_what_was_written_over_is_left_out_and_counted(self):
        self.slots(*range(8))
        self.sent(8, b'tail')
        found = self.read()
        assert [(0, self.slot(0)), (0, self.slot(1))] == found[:HEAD]
        # Slots 6 to 8 are the last three; 2 to 5 are gone.
        assert (4 * live.SLOT, self.slot(6)) == found[HEAD]
        assert found[-1] == (0, b'tail')

    def test_a_part_that_lags_in_the_ring_is_not_left_out(self):
        # The oldest one that the ring has.
        self.slots(*range(5))
        self.cluster.lagging.add(self.place(2))
        assert self.content() == self.slot(0) + self.slot(1)
        self.cluster.lagging.clear()
        assert self.content() == b''.join(map(self.slot, (2, 3, 4)))

    def test_what_does_not_fit_is_passed_over(self):
        for name, content in (
            ('000000', b'no header'),
            ('000001', body(0, b'elsewhere')),
            ('000002', body(2 * live.SLOT + 1, b'')),
            ('000003', body(3 * live.SLOT, b'', ring=0)),
            ('000004', body(4 * live.SLOT, b'x' * (live.SLOT + 200))),
            ('end', b'many'),
            ('x/../y', b'1'),
        ):
            self.send(name, content)
        assert self.read() == []
        assert not self.reader.finished

    def waiting(self, number):
        for place in range(1, number):
            content = body(place * live.SLOT, self.slot(place), head=number)
            assert self.send(f'{place:06d}', content) == 201
        return b''.join(self.slot(place) for place in range(number))

    def test_what_waits_for_an_earlier_part_has_little_room(self):
        whole = self.waiting(100)
        self.content()
        room = 4 * live.SLOT
        reader = self.new_reader()
        tracemalloc.start()
        self.addCleanup(tracemalloc.stop)
        for _ in range(2):
            assert list(reader.read()) == []
        assert tracemalloc.get_traced_memory()[1] < 3 * room
        first = body(0, self.slot(0), head=100)
        assert self.send('000000', first) == 201
        content = b''.join(part.content for part in reader.read())
        assert whole == content

    def test_a_part_that_is_replaced_before_its_turn_is_left_out(self):
        self.slots(2, 3, 4)
        assert self.read() == []
        self.slots(0, 1, 5)
        slots = [(0, self.slot(number)) for number in (0, 1, 3, 4, 5)]
        slots[2] = live.SLOT, self.slot(3)
        assert self.read() == slots

    def test_a_part_whose_turn_comes_in_an_outage_is_not_lost(self):
        whole = self.waiting(9)
        assert list(self.reader.read()) == []
        self.send('000000', body(0, self.slot(0), head=9))
        contents = []
        for _ in range(20):
            asked = itertools.count(1)

            def fail(request, asked=asked):
                if next(asked) % 3 == 0:
                    raise errors.Unavailable('503')

            self.cluster.before = fail
            with contextlib.suppress(errors.Unavailable):
                for part in self.reader.read():
                    contents.append(part.content)
                    if len(contents) % 2:
                        # A caller may leave the rest for its next call.
                        break
        assert whole == b''.join(contents)

    def test_a_hostile_offset_takes_no_time(self):
        self.slots(0, 1)
        offset = 3 * 10**9 * live.SLOT
        self.send('000002', body(offset, b'far', ring=1))
        left_out = offset - 2 * live.SLOT
        assert (left_out, b'far') == self.read()[-1]

    def test_the_url_is_for_this_run_alone(self):
        parts = parse.urlsplit(self.url)
        folder, other = self.objects.log, 'runs/logs/another/000000'
        assert parse.unquote(parts.path).endswith(folder)
        path = parse.unquote(parts.path).removesuffix(folder) + other
        url = parts._replace(path=path).geturl()
        assert self.cluster.put_signed(url) == 401

    def tail(self):
        """Return what shows the output, what it shows, and its notes."""
        shown, notes = [], []

        def sleep(seconds):
            self.now += seconds

        tail = logs.Tail(
            self.reader,
            lambda: {'deploy_stdout': 'out', 'deploy_stderr': ''},
            show=shown.append,
            note=notes.append,
            clock=lambda: self.now,
            sleep=sleep,
        )
        return tail, shown, notes

    def test_parts_are_fetched_as_far_as_there_is_room(self):
        self.slots(0, 1, 2)
        tail, shown, _ = self.tail()
        tail.fetch(live.SLOT)
        tail.flush()
        assert shown == [self.slot(0)]
        tail.fetch(live.SLOT + 1)
        tail.flush()
        assert b''.join(shown[1:]) == self.slot(1) + self.slot(2)

    def test_what_comes_after_the_end_is_waited_for(self):
        tail, shown, notes = self.tail()
        self.now += 45
        tail.flush()
        assert notes == []
        began = self.now
        tail.finish('cancelled')
        assert (self.now - began, shown) == (15, [])
        tail.flush()
        assert 'It has not started the run, or' in notes[0]
        # One that has answered shows its outputs at once.
        tail, shown, notes = self.tail()
        began = self.now
        tail.finish('complete')
        assert (self.now - began, shown) == (0, [b'out'])
        assert 'sends output only at the end' in notes[0]

    def test_a_listing_holds_for_a_moment(self):
        self.sent(0, b'one')
        assert [part.content for part in self.reader.read()] == [b'one']
        before = len(self.cluster.seen)
        self.now += 0.8
        assert list(self.reader.read()) == []
        assert len(self.cluster.seen) == before
        self.now += 1
        self.sent(0, b'one two')
        assert self.content() == b' two'


class ManyTest(Case):
    """No server keeps the output of another one from being read."""

    def setUp(self):
        super().setUp()
        self.patch(stores, 'PAGE', 10)
        self.patch(logs, '_MOST', 100)
        source = self.source()
        self.folders = [
            run_objects.RunObjects(self.store, 'stack', RUN, member, 1).log
            for member in range(9)
        ]
        self.readers = [logs.Reader(source, each) for each in self.folders]
        self.kept = self.cluster.container(self.container).objects

    def print(self, text, members):
        for member in members:
            name = f'{self.folders[member]}000000'
            self.store.put_object(self.container, name, body(0, text, 1, 1))

    def junk(self, name, number):
        self.kept.update({name.format(n): b'' for n in range(number)})

    def read(self, members):
        self.now += 1
        self.cluster.seen.clear()
        parts = [[*self.readers[member].read()] for member in members]
        return {b''.join(one.content for one in each) for each in parts}

    def listings(self):
        return [one for one in self.cluster.seen if 'prefix' in one.query]

    def test_junk_of_one_server_hides_no_other(self):
        members = range(4)
        self.print(b'one\n', members)
        for member in (0, 2):
            self.junk(self.folders[member] + '000000.{:06d}', 300)
        assert self.read(members) == {b'one\n'}
        self.print(b'one\ntwo\n', members)
        assert self.read(members) == {b'two\n'}

    def test_junk_costs_a_few_requests_and_not_one_for_each_page(self):
        # This is of no run.
        self.junk(f'runs/logs/{RUN}' + '/00001.1.{:06d}/000000', 2000)
        self.junk(self.folders[1] + '000000.{:06d}', 1000)
        self.patch(logs, '_MOST', 500)
        members = range(4)
        self.print(b'one\n', members)
        self.read(members)
        self.print(b'one\ntwo\n', members)
        assert self.read(members) == {b'two\n'}
        # 3000 objects are 300 pages: 50 are of all runs, 101 of that one.
        assert len(self.listings()) < 170

    def test_one_listing_tells_of_all_servers(self):
        members = range(9)
        self.print(b'one\n', members)
        self.read(members)
        self.read(members)
        assert len(self.listings()) == 1
