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


def test_each_test_of_a_promise_exists():
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
        assert (_TESTS / folder / name).exists(), name


KIB, MIB = 1024, 1024 * 1024

#: What the page says of a limit, and where the limit is.
LIMITS = [
    ('the first {:,} characters;', 'bounds.TEXT'),
    ('; {} of them are shown', 'mistral.outcome.REASON_LIMIT'),
    ('``signal_body_limit`` ({:,} bytes)', 'runs.run_objects.BODY_LIMIT'),
    ('{:,} objects in a listing for all', 'runs.logs._MOST'),
    ('the closest of {:,} names', 'bounds.CANDIDATES'),
    ('| {:,}, and two for each', 'signals.arrivals.SPARE'),
    ('alone, {} at a poll', 'signals.arrivals.ONE_BY_ONE'),
    ('one in {:.0f} s', 'signals.watcher.PEEK_SECONDS'),
    ('| {:,}; more is an error', 'objectstore.stores.MOST'),
    ('Names of plans, without Mistral | {:,}', 'plans.plan_names._NAMES'),
    ('the {} newest, by ID', 'validations.validation_ledger._READ'),
    ('; {:,} values and', 'yaml_reading.VALUES'),
    ('written out; {} levels', 'yaml_reading.DEPTH'),
    ('; {:,} characters of a number', 'yaml_reading.NUMBER'),
    ('{} links to links', 'content.tarballs._LINKS'),
    ('; {:,} files made of them', 'plans.rendering.jinja._FILES'),
    ('{:,} lines; of more', 'plans.deploy.comparing.LINES'),
    ('{:,} forms of them', 'masking.MOST_FORMS'),
    ('a text counting {} at least', 'masking._LEAST'),
    ('{} levels of lists and maps', 'clients.rest.DEPTH'),
    ('of JSON; {} levels', 'objectstore.parcels._DEPTH'),
    ('run reads {:,} objects at most', 'signals.live.MOST'),
    ('{:,} bytes of each', 'signals.live.LONGEST'),
    ('in JSON, {:,} stacks, tags,', 'runs.ordering._SELECTORS'),
    ('metadata each; {:,} targets', 'runs.run_records.MOST'),
    ('; {} runs; more on the next page', 'runs.run_store.PAGE'),
]

#: The same, of bytes or characters in KiB and MiB.
SIZES = [
    ('Order of a run | {} MiB', MIB, 'runs.ordering.LONGEST'),
    ('| about {} MiB;', MIB, 'engine.runs.door._PAGE'),
    ('a reader has {} MiB of parts', MIB, 'osc.runs.following._ROOM'),
    ('| {} MiB of characters; 200,000', MIB, 'yaml_reading.LARGEST'),
    ('and {} MiB of them with aliases', MIB, 'yaml_reading.CHARACTERS'),
    ('attempt reads | {} KiB of characters', KIB, 'yaml_reading.LARGEST_PURE'),
    ('| 50,000; {} MiB each', MIB, 'content.storage.FILE_LIMIT'),
    ('refers to | {} MiB', MIB, 'plans.content.references.LARGEST'),
    ('made of them, {} MiB each', MIB, 'plans.rendering.jinja._LARGEST'),
    ('forms of them; {} Mi characters times forms', MIB, 'masking.MOST_WORK'),
    ('{} MiB of JSON;', MIB, 'objectstore.parcels._MOST_SENT'),
]


@pytest.mark.parametrize(
    ('said', 'unit', 'where'),
    [
        *((said, 1, where) for said, where in LIMITS),
        *SIZES,
    ],
)
def test_each_limit_is_as_the_page_says(said, unit, where):
    module, _, name = where.rpartition('.')
    limit = getattr(importlib.import_module(f'heat_plugins.{module}'), name)
    page = ' '.join(pages.read('threat-model').split())
    assert said.format(limit // unit) in page
