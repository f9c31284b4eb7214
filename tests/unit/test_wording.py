# SPDX-License-Identifier: Apache-2.0
import testtools

from heat_plugins import wording


def failures(reason, names):
    return [
        wording.Fault(name=name, reason=reason.format(name=name))
        for name in names
    ]


class WordingTest(testtools.TestCase):
    def test_one_is_not_several(self):
        assert [wording.counted(number, 'target') for number in range(3)] == [
            '0 targets',
            '1 target',
            '2 targets',
        ]

    def test_failures_with_one_reason_are_one_line(self):
        assert wording.lines(
            [
                *failures('no disk', ['c']),
                *failures('off', ['a', 'b']),
            ],
            'elsewhere',
        ) == ['2 servers (a, b): off', 'c: no disk']

    def test_three_are_named(self):
        (group,) = wording.grouped(failures('off', 'abcde'))
        assert group.line('host') == '5 hosts (a, b, c, and 2 more): off'

    def test_what_tells_them_apart_makes_no_other_reason(self):
        config = '2cc7bdc0-71c9-4096-8f43-3d64e6dc02{}.json'
        found = wording.grouped(
            wording.Fault(
                name=f'shop db{number}',
                also=(f'db{number}',),
                reason=f'db{number} is off: see {config.format(number)}',
            )
            for number in range(10, 60)
        )
        assert [each.reason for each in found] == [
            f'db10 is off: see {config.format(10)}'
        ]
        assert len(found[0].names) == 50

    def test_a_reason_of_one_is_shown_as_it_is(self):
        (group,) = wording.grouped(failures('{name} is off', ['db1']))
        assert group.line() == 'db1: db1 is off'

    def test_a_reason_shows_no_placeholder(self):
        (group,) = wording.grouped(
            failures('cannot start the {name} server', ['web', 'shop'])
        )
        assert (
            group.line()
            == '2 servers (web, shop): cannot start the web server'
        )

    def test_a_number_is_no_name_in_a_reason(self):
        found = wording.grouped(failures('exit status {name}', ['11', '256']))
        assert [each.reason for each in found] == [
            'exit status 11',
            'exit status 256',
        ]

    def test_nor_is_a_short_word(self):
        found = wording.grouped(
            wording.Fault(name=name, reason=f'no {name} process')
            for name in ('db', 'vm')
        )
        assert [each.reason for each in found] == [
            'no db process',
            'no vm process',
        ]
        (group,) = wording.grouped(
            wording.Fault(name=name, reason='no db process')
            for name in ('db', 'web')
        )
        assert group.reason == 'no db process'

    def test_a_name_within_a_word_makes_another_reason(self):
        reasons = 'db1 is off', 'db10 is off'
        found = wording.grouped(
            wording.Fault(name='db1', reason=reason) for reason in reasons
        )
        assert len(found) == 2

    def test_there_are_twenty_lines_at_most(self):
        many = failures('{name}', (f'web{each}' for each in range(100)))
        alike = [
            wording.Fault(name=f'db{number}', reason=f'reason {number // 2}')
            for number in range(100)
        ]
        assert len(wording.lines(many, 'elsewhere')) == 1
        lines = wording.lines(alike, 'elsewhere')
        assert len(lines) == 20
        assert lines[-1] == 'and 62 servers more: elsewhere'
        assert len(wording.lines(alike[:40], 'elsewhere')) == 20
        assert 'elsewhere' not in str(wording.lines(alike[:40], 'elsewhere'))
