# SPDX-License-Identifier: Apache-2.0
"""Folders, settings, ports and configuration of an instance."""

import stat

from minicloud_lib import configuration
from minicloud_lib import errors
from minicloud_lib import layout
from minicloud_lib import settings
import pytest


@pytest.fixture
def home(tmp_path):
    return layout.Home(tmp_path)


def prepared(instance, profile=None):
    found = settings.prepare(instance, profile)
    found.save(instance)
    configuration.write(instance, found)
    return found


@pytest.mark.parametrize('name', ['..', 'a/b', '', 'venv', '-x', 'A'])
def test_names_cannot_lead_elsewhere(home, name):
    with pytest.raises(errors.UsageError):
        home.instance(name)


def test_secrets_are_kept_for_the_owner_alone(home):
    instance = home.instance('one')
    first = prepared(instance)
    assert settings.prepare(instance) == first
    assert home.instances() == [instance]
    for path in (instance.settings, *instance.conf.iterdir()):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(instance.path.stat().st_mode) == 0o700
