# SPDX-License-Identifier: Apache-2.0
"""Where signals lie."""

import testtools

from heat_plugins.signals import signal_names


class NamesTest(testtools.TestCase):
    def test_a_container_is_named_after_its_root_stack(self):
        assert signal_names.container('1234') == 'heat-plugins-1234'

    def test_signals_lie_under_one_prefix(self):
        assert signal_names.signal('d', 'c') == 'signals/d/c'
        assert signal_names.signal('d', 'c').startswith(signal_names.SIGNALS)

    def test_no_deployments_folder_holds_the_signals_of_another(self):
        assert not signal_names.signal('abcd', 'c').startswith(
            signal_names.folder('abc')
        )
