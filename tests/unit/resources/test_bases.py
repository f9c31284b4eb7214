# SPDX-License-Identifier: Apache-2.0
"""What events, states and failures say is safe to show."""

import contextlib
import types

from heat.common import exception
import testtools

from heat_plugins.resources import bases


class Told:
    """What Heat's own does with reasons."""

    def __init__(self):
        self.stack = types.SimpleNamespace(id='1', thread_group_mgr=None)
        self.told = []

    def _add_event(self, action, status, reason):
        self.told.append(reason)

    def state_set(self, action, status, reason='state changed', lock=0):
        self.told.append(reason)

    @contextlib.contextmanager
    def _action_recorder(self, action):
        try:
            yield
        except Exception as exc:
            self.told.append(str(exc))
            raise


class OursTold(bases.Eventful, Told):
    pass


class ReasonTest(testtools.TestCase):
    BAD = 'a\nINFO b\x1b[2J\u202e\U0001f44d ?temp_url_sig=abc&x'
    SAFE = r'a\nINFO b\x1b[2J\u202e\U0001f44d ?temp_url_sig=***&x'

    def test_events_and_states_say_what_is_safe_to_show(self):
        found = OursTold()
        found._add_event('UPDATE', 'FAILED', self.BAD)
        found.state_set('UPDATE', 'FAILED', self.BAD)
        found.state_set('UPDATE', 'FAILED', self.BAD, 1)
        found.state_set('UPDATE', 'COMPLETE')
        assert found.told == [*[self.SAFE] * 3, 'state changed']

    def test_a_failure_that_heat_logs_is_safe_and_keeps_its_type(self):
        for kind in (ValueError, exception.NotFound):
            found = OursTold()
            with (
                self.assertRaises(kind) as raised,
                found._action_recorder('UPDATE'),
            ):
                raise kind(self.BAD)
            assert found.told == [self.SAFE]
            assert str(raised.exception) == self.SAFE
