# SPDX-License-Identifier: Apache-2.0
"""The mini cloud as its Python client controls it."""

import pytest

from tests.functional import base


def test_an_error_of_a_command_in_this_process_is_that_of_the_command(
    tmp_path,
):
    cloud = base.minicloud_client.Cloud('web', home=tmp_path)
    errors = []
    for call in (cloud.minicloud, cloud.control):
        with pytest.raises(base.minicloud_client.CommandError) as caught:
            call('kill', 'heat')
        errors.append((caught.value.returncode, caught.value.stderr))
    assert errors[0] == errors[1]
    assert errors[0][0] == 3
