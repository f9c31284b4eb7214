# SPDX-License-Identifier: Apache-2.0
"""The [heat_plugins] options."""

from heat_plugins import config


def test_the_generator_finds_every_option_and_the_secret_is_not_logged():
    assert config.list_opts() == [('heat_plugins', config.OPTS)]
    assert all(opt.help for opt in config.OPTS)
    (secret,) = [opt for opt in config.OPTS if opt.secret]
    assert secret.name == 'temp_url_secret'
