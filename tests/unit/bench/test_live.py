# SPDX-License-Identifier: Apache-2.0
"""What the bench makes of the output that a command follows."""

import io
import time
import types

from tests.bench import live


def reader(text):
    found = live._Reader(types.SimpleNamespace(stderr=io.BytesIO(text)))
    found.thread.join()
    return found


def test_blocks_are_counted_by_server():
    # Whole seconds, which the stamps keep as they are.
    now = int(time.time())
    found = reader(
        b'Run 1: PRINT on a\n'
        b's a: at %.3f 0\ns a: xxx\ns b: at %.3f 0\ns b: at %.3f 1\n'
        % (now - 3, now - 2, now)
    )
    assert found.blocks == {b's a: ': [0], b's b: ': [0, 1]}
    assert 3 <= found.lags[0] < 60


def test_one_server_has_no_name_before_its_lines():
    assert reader(b'at 1.000 0\nat 2.000 1\n').blocks == {b'': [0, 1]}


def test_lags_are_told_by_their_order():
    assert list(live._lags([9.0, 1.0, 2.0]).values()) == ['2.0', '9.0', '9.0']
