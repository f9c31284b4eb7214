# SPDX-License-Identifier: Apache-2.0
"""The engine that the tests of resources use behaves as Heat's."""

from heat.common import exception

from tests.unit import heat_fixture


class HeatFixtureTest(heat_fixture.HeatTestCase):
    def test_an_unannounced_call_is_refused(self):
        self.assertRaises(
            heat_fixture.UnexpectedCall,
            self.heat.rpc.identify_stack,
            self.heat.context,
            'stack',
        )

    def test_the_engines_errors_arrive_as_remote_ones(self):
        def show():
            self.heat.rpc.show_software_config(self.heat.context, 'absent')

        error = self.assertRaises(exception.NotFound, show)
        assert type(error).__name__ == 'NotFound_Remote'
        with self.heat.rpc.ignore_error_by_name('NotFound'):
            show()
