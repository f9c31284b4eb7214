# SPDX-License-Identifier: Apache-2.0
"""Folders, settings, ports and configuration of an instance."""

import stat

from minicloud_lib import configuration
from minicloud_lib import errors
from minicloud_lib import layout
from minicloud_lib import settings
import pytest


def test_names_cannot_lead_elsewhere_and_secrets_are_the_owners(tmp_path):
    home = layout.Home(tmp_path)
    for name in ('..', 'a/b', '', 'venv', '-x', 'A'):
        with pytest.raises(errors.UsageError):
            home.instance(name)
    instance = home.instance('one')
    first = settings.prepare(instance, None)
    first.save(instance)
    configuration.write(instance, first)
    assert settings.prepare(instance) == first
    assert home.instances() == [instance]
    for path in (instance.settings, *instance.conf.iterdir()):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(instance.path.stat().st_mode) == 0o700
