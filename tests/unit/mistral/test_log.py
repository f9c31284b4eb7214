# SPDX-License-Identifier: Apache-2.0
"""What is remembered of signals."""

from heat_plugins.mistral.executions import workflow_requests


def test_entry_fits_a_column_of_a_database():
    for letter in ('e', 'é', '\U0001f4a3'):
        text = workflow_requests.write_log(
            {'error': letter * 10**6, 'ignored': [letter * 99] * 99}
        )
        # Heat's is a TEXT, which MariaDB ends at 64 KB.
        assert len(text.encode()) < 2**16
        entry = workflow_requests.read_log(
            {workflow_requests.log_key(): text}
        )[0]
        assert entry['error'].endswith(f'{letter}…')
        assert len(entry['error']) > workflow_requests.LOGGED_ERROR / 13
