# SPDX-License-Identifier: Apache-2.0
import pytest

from heat_plugins import wording


def faults(reason, names):
    return [
        wording.Fault(name=name, reason=reason.format(name=name))
        for name in names
    ]


def test_failures_with_one_reason_are_one_line():
    found = wording.lines(
        [*faults('no disk', 'c'), *faults('off', 'ab')], 'elsewhere'
    )
    assert found == ['2 servers (a, b): off', 'c: no disk']
    (group,) = wording.grouped(faults('off', 'abcde'))
    assert group.line('host') == '5 hosts (a, b, c, and 2 more): off'
    assert wording.counted(0, 'target') == '0 targets'


def test_what_tells_them_apart_makes_no_other_reason():
    config = '2cc7bdc0-71c9-4096-8f43-3d64e6dc02{}.json'
    (group,) = wording.grouped(
        wording.Fault(
            name=f'shop db{number}',
            also=(f'db{number}',),
            reason=f'db{number} is off: see {config.format(number)}',
        )
        for number in range(10, 60)
    )
    assert group.reason == f'db10 is off: see {config.format(10)}'
    assert len(group.names) == 50


@pytest.mark.parametrize(
    ('reason', 'names', 'reasons'),
    [
        # It shows no placeholder.
        ('{name} is off', ['db1'], ['db1 is off']),
        ('the {name} server', ['web', 'shop'], ['the web server']),
        # A number is no name, and neither is a short word.
        ('status {name}', ['11', '256'], ['status 11', 'status 256']),
        ('no {name} here', ['db', 'vm'], ['no db here', 'no vm here']),
        ('no db process', ['db', 'web'], ['no db process']),
    ],
)
def test_a_name_in_a_reason(reason, names, reasons):
    found = wording.grouped(faults(reason, names))
    assert [group.reason for group in found] == reasons
    # A name within a word makes another reason.
    both = [*faults('db1 is off', ['db1']), *faults('db10 is off', ['db1'])]
    assert len(wording.grouped(both)) == 2


def test_there_are_twenty_lines_at_most():
    many = faults('{name}', (f'web{each}' for each in range(100)))
    assert len(wording.lines(many, 'elsewhere')) == 1
    pairs = [
        wording.Fault(name=f'db{number}', reason=f'reason {number // 2}')
        for number in range(100)
    ]
    lines, all_of_them = (
        wording.lines(pairs[:count], 'elsewhere') for count in (100, 40)
    )
    assert len(lines) == len(all_of_them) == 20
    assert lines[-1] == 'and 62 servers more: elsewhere'
    assert 'elsewhere' not in str(all_of_them)
