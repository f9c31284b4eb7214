# SPDX-License-Identifier: Apache-2.0
"""What is remembered of signals."""

from heat_plugins.mistral.executions import log


def remembered(count):
    return {
        log.key(): log.write({'error': None, 'number': number})
        for number in range(count)
    }


def test_newest_comes_first():
    data = remembered(3) | {'workflows': '{}'}
    assert [one['number'] for one in log.read(data)] == [2, 1, 0]
    assert log.surplus(data) == []


def test_what_is_too_old_is_forgotten():
    data = remembered(13)
    for key in log.surplus(data):
        del data[key]
    assert len(data) == log.SIGNALS
    assert [one['number'] for one in log.read(data)][-1] == 3


def test_entry_fits_a_column_of_a_database():
    for letter in ('e', 'é', '\U0001f4a3'):
        text = log.write(
            {'error': letter * 10**6, 'ignored': [letter * 99] * 99}
        )
        # Heat's is a TEXT, which MariaDB ends at 64 KB.
        assert len(text.encode()) < 2**16
        entry = log.read({log.key(): text})[0]
        assert entry['error'].endswith(f'{letter}…')
        assert len(entry['error']) > log.ERROR / 13
