# SPDX-License-Identifier: Apache-2.0
"""An upload is deleted by whoever has used it, not only by who made it."""

import contextlib
import json

import pytest

from heat_plugins import errors
from heat_plugins.objectstore import parcels
from tests.unit import fake_swift


@pytest.fixture
def store():
    return fake_swift.Cluster(clock=lambda: 0).store()


def is_there(store, place):
    return store.has_object(place['container'], place['object'])


def put(store, content):
    """Put an object that is somebody else's; return a reference to it."""
    store.put_container('mine', {})
    store.put_object('mine', 'nodes.json', content)
    return parcels.reference('mine', 'nodes.json', content)


def test_an_upload_goes_once_it_was_used_also_if_that_fails(store):
    place = parcels.send(store, json.dumps(['hunter2']).encode())
    with (
        contextlib.suppress(ZeroDivisionError),
        parcels.opened(store, place) as content,
    ):
        assert content == ['hunter2']
        # Mistral runs the action again if its executor dies here.
        assert is_there(store, place)
        raise ZeroDivisionError
    assert not is_there(store, place)
    # An object of somebody else's stays.
    place = put(store, b'[]')
    with parcels.opened(store, place):
        pass
    assert is_there(store, place)
    # What is no reference is given as it is.
    for value in ([], {}, {'a': 1}, {'container': 'x'}):
        with parcels.opened(store, value) as found:
            assert found is value


def test_an_object_that_is_no_json_or_too_large_is_refused_by_name(store):
    for content in (b'{', b'[' * 200 + b']' * 200, b'[' * 10**5):
        with pytest.raises(errors.BadContent, match=r'mine/nodes\.json'):
            parcels.received(store, put(store, content))
    place = put(store, b' ' * 2**25 + b'1')
    with pytest.raises(errors.TooLarge), parcels.opened(store, place):
        pass
