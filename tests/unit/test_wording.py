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
        self.assertEqual(
            ['0 targets', '1 target', '2 targets'],
            [wording.counted(number, 'target') for number in range(3)],
        )

    def test_failures_with_one_reason_are_one_line(self):
        self.assertEqual(
            ['2 servers (a, b): off', 'c: no disk'],
            wording.lines(
                [
                    *failures('no disk', ['c']),
                    *failures('off', ['a', 'b']),
                ],
                'elsewhere',
            ),
        )

    def test_three_are_named(self):
        (group,) = wording.grouped(failures('off', 'abcde'))
        self.assertEqual(
            '5 hosts (a, b, c, and 2 more): off', group.line('host')
        )

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
        self.assertEqual(
            [f'db10 is off: see {config.format(10)}'],
            [each.reason for each in found],
        )
        self.assertEqual(50, len(found[0].names))

    def test_a_reason_of_one_is_shown_as_it_is(self):
        (group,) = wording.grouped(failures('{name} is off', ['db1']))
        self.assertEqual('db1: db1 is off', group.line())

    def test_a_reason_shows_no_placeholder(self):
        (group,) = wording.grouped(
            failures('cannot start the {name} server', ['web', 'shop'])
        )
        self.assertEqual(
            '2 servers (web, shop): cannot start the web server', group.line()
        )

    def test_a_number_is_no_name_in_a_reason(self):
        found = wording.grouped(failures('exit status {name}', ['11', '256']))
        self.assertEqual(
            ['exit status 11', 'exit status 256'],
            [each.reason for each in found],
        )

    def test_nor_is_a_short_word(self):
        found = wording.grouped(
            wording.Fault(name=name, reason=f'no {name} process')
            for name in ('db', 'vm')
        )
        self.assertEqual(
            ['no db process', 'no vm process'], [each.reason for each in found]
        )
        (group,) = wording.grouped(
            wording.Fault(name=name, reason='no db process')
            for name in ('db', 'web')
        )
        self.assertEqual('no db process', group.reason)

    def test_a_name_within_a_word_makes_another_reason(self):
        reasons = 'db1 is off', 'db10 is off'
        found = wording.grouped(
            wording.Fault(name='db1', reason=reason) for reason in reasons
        )
        self.assertEqual(2, len(found))

    def test_there_are_twenty_lines_at_most(self):
        many = failures('{name}', (f'web{each}' for each in range(100)))
        alike = [
            wording.Fault(name=f'db{number}', reason=f'reason {number // 2}')
            for number in range(100)
        ]
        self.assertEqual(1, len(wording.lines(many, 'elsewhere')))
        lines = wording.lines(alike, 'elsewhere')
        self.assertEqual(20, len(lines))
        self.assertEqual('and 62 servers more: elsewhere', lines[-1])
        self.assertEqual(20, len(wording.lines(alike[:40], 'elsewhere')))
        self.assertNotIn(
            'elsewhere', str(wording.lines(alike[:40], 'elsewhere'))
        )
