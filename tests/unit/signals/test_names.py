# SPDX-License-Identifier: Apache-2.0
"""Where signals lie."""

from heat_plugins.signals import signal_names


def test_each_deployment_has_a_folder_in_its_root_stacks_container():
    assert signal_names.container('1234') == 'heat-plugins-1234'
    signal = signal_names.signal('abcd', 'c')
    assert signal == f'{signal_names.SIGNALS}abcd/c'
    assert signal.startswith(signal_names.folder('abcd'))
    assert not signal.startswith(signal_names.folder('abc'))
