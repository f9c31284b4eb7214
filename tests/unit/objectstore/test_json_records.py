# SPDX-License-Identifier: Apache-2.0
"""Records of JSON, as they are and as others may have left them."""

import dataclasses
import gzip

import pytest

from heat_plugins import errors
from heat_plugins import pools
from heat_plugins.objectstore import exclusive
from heat_plugins.objectstore import json_records
from tests.unit import fake_swift

VALUE = {'b': [1, 'é'], 'a': None}


@dataclasses.dataclass(frozen=True)
class Pair:
    left: int
    right: str = ''


@pytest.fixture
def store():
    found = fake_swift.Cluster().store()
    found.put_container('box', {})
    return found


def test_either_form_is_read_by_either(store):
    for packed in (False, True):
        json_records.Records(store, 'box', packed=packed).write('x', VALUE)
        other = json_records.Records(store, 'box', packed=not packed)
        value = other.fetch('x').value
        assert (value, list(value)) == (VALUE, ['b', 'a'])


def test_what_is_no_record_or_of_another_class_is_told_or_none(store):
    records = json_records.Records(store, 'box', limit=150)
    texts = (b'', b'x', b'\xff', b'[' * 100, b'{}' * 99)
    for content in (*texts, gzip.compress(b' ' * 999)):
        store.put_object('box', 'x', content)
        with pytest.raises(ValueError, match=r'it |gzip|JSON|Expecting|codec'):
            records.fetch('x')
        assert records.load(Pair, 'x') is None
        assert records.has('x')
    records.write('x', {'left': 1, 'later': 2})
    records.write('y', {'left': 'one'})
    assert records.load(Pair, 'x') == Pair(1)
    assert records.load(Pair, 'y') is None
    assert records.load(Pair, 'z') is None


def test_a_record_is_created_once_and_its_container(store):
    records = json_records.Records(store, 'new')
    assert [records.create('x', number) for number in (1, 2)] == [True, False]
    assert records.fetch('x').value == 1
    # Names have no prefix, and are no announcements.
    records = json_records.Records(store, 'box', prefix='own/')
    for name in ('b/2', 'b/1', 'a'):
        records.write(name, 1)
    json_records.Records(store, 'box').write(f'{exclusive.FOLDER}x/y', 1)
    assert records.names('b/') == ['b/1', 'b/2']
    assert records.names() == ['a', 'b/1', 'b/2']
    records.delete('a', 'gone', 'b/1')
    assert records.names() == ['b/2']
    assert json_records.Records(store, 'box').names() == ['own/b/2']
    assert json_records.Records(store, 'gone').names() == []


def test_requests_are_repeated_by_a_pool_alone():
    cluster = fake_swift.Cluster()
    store = cluster.store()
    store.put_container('box', {})
    cluster.fail(2, 503, 'PUT')
    once = json_records.Records(store, 'box')
    with pytest.raises(errors.Unavailable):
        once.write('x', 1)
    pool = pools.Pool(wait=0)
    json_records.Records(store, 'box', pool=pool).write('x', 1)
    assert once.fetch('x').value == 1
