# SPDX-License-Identifier: Apache-2.0
"""What doc/source/threat-model.rst says is what the code and tests have."""

import importlib
import pathlib
import re

import pytest

from tests import pages

_TESTS = pathlib.Path(__file__).resolve().parents[2]


def test_each_test_that_the_page_names_exists():
    named = set(re.findall('``(test_\\w+)``', pages.read('threat-model')))
    there = {
        name
        for file in _TESTS.rglob('*.py')
        for name in re.findall(r'^ *def (test_\w+)\(', file.read_text(), re.M)
    }
    assert len(named) > 10
    assert named <= there, named - there


def test_each_file_of_a_promise_has_tests():
    section = (_TESTS.parent / 'CONTRIBUTING.rst').read_text()
    section = section.partition('\nPromises and their tests\n')[2]
    section = section.partition('\nTests that race\n')[0]
    named = re.findall(
        r'``((?:tests/unit|production|\w+)[\w/]*(?:\.py)?)``', section
    )
    files = [name for name in named if '/' in name or name.endswith('.py')]
    assert len(files) > 40
    for name in files:
        folder = '..' if name.startswith('tests/') else 'functional'
        place = _TESTS / folder / name
        assert place.exists(), name
        if place.name.startswith('test_'):
            assert re.search(r'^ *def test_', place.read_text(), re.M), name


KIB, MIB = 1024, 1024 * 1024

#: What the page says of a limit, and where the limit is.
LIMITS = [
    ('``signal_body_limit`` ({:,} bytes)', 'runs.run_objects.BODY_LIMIT'),
    ('the closest of {:,} names', 'bounds.CANDIDATES'),
    ('| {:,}, and two for each', 'signals.arrivals.SPARE'),
    ('alone, {} at a poll', 'signals.arrivals.ONE_BY_ONE'),
    ('| {:,}; more is an error', 'objectstore.stores.MOST'),
    ('; {:,} values and', 'yaml_reading.VALUES'),
    ('written out; {} levels', 'yaml_reading.DEPTH'),
    ('; {:,} characters of a number', 'yaml_reading.NUMBER'),
    ('{:,} lines; of more', 'plans.deploy.comparing.LINES'),
    ('{:,} forms of them', 'masking.MOST_FORMS'),
    ('{} levels of lists and maps', 'clients.rest.DEPTH'),
    ('run reads {:,} objects at most', 'signals.live.MOST'),
    ('{:,} bytes of each', 'signals.live.LONGEST'),
    ('metadata each; {:,} targets', 'runs.run_records.MOST'),
    ('; {} runs; more on the next page', 'runs.run_store.PAGE'),
]

#: The same, of bytes or characters in KiB and MiB.
SIZES = [
    ('Order of a run | {} MiB', MIB, 'runs.ordering.LONGEST'),
    ('| {} MiB of characters; 200,000', MIB, 'yaml_reading.LARGEST'),
    ('and {} MiB of them with aliases', MIB, 'yaml_reading.CHARACTERS'),
    ('attempt reads | {} KiB of characters', KIB, 'yaml_reading.LARGEST_PURE'),
    ('| 50,000; {} MiB each', MIB, 'content.storage.FILE_LIMIT'),
    ('refers to | {} MiB', MIB, 'plans.content.references.LARGEST'),
    ('forms of them; {} Mi characters times forms', MIB, 'masking.MOST_WORK'),
]


@pytest.mark.parametrize(
    ('said', 'unit', 'where'),
    [*((said, 1, where) for said, where in LIMITS), *SIZES],
)
def test_each_limit_is_as_the_page_says(said, unit, where):
    module, _, name = where.rpartition('.')
    limit = getattr(importlib.import_module(f'heat_plugins.{module}'), name)
    page = ' '.join(pages.read('threat-model').split())
    assert said.format(limit // unit) in page
