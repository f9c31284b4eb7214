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


@pytest.fixture
def place(store):
    return parcels.send(store, json.dumps(['hunter2']).encode())


def is_there(store, place):
    return store.has_object(place['container'], place['object'])


def put(store, content):
    """Put an object that is somebody else's; return a reference to it."""
    store.put_container('mine', {})
    store.put_object('mine', 'nodes.json', content)
    return parcels.reference('mine', 'nodes.json', content)


def test_an_upload_goes_once_it_was_used_also_if_that_fails(store, place):
    with (
        contextlib.suppress(ZeroDivisionError),
        parcels.opened(store, place) as content,
    ):
        assert content == ['hunter2']
        # Mistral runs the action again if its executor dies here.
        assert is_there(store, place)
        raise ZeroDivisionError
    assert not is_there(store, place)


def test_an_object_of_somebody_elses_stays(store):
    place = put(store, b'[]')
    with parcels.opened(store, place):
        pass
    assert is_there(store, place)


@pytest.mark.parametrize('value', [[], {}, {'a': 1}, {'container': 'x'}])
def test_what_is_no_reference_is_given_as_it_is(store, value):
    with parcels.opened(store, value) as found:
        assert found is value


@pytest.mark.parametrize(
    'content', [b'{', b'[' * 200 + b']' * 200, b'[' * 10**5], ids=len
)
def test_an_object_that_is_no_json_is_refused_by_name(store, content):
    with pytest.raises(errors.BadContent, match=r'mine/nodes\.json'):
        parcels.received(store, put(store, content))


def test_an_executor_reads_no_more_than_a_file_of_values_may_hold(store):
    place = put(store, b' ' * 2**25 + b'1')
    with pytest.raises(errors.TooLarge), parcels.opened(store, place):
        pass
