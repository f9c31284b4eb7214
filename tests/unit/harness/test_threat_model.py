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
        for file in _TESTS.rglob('test_*.py')
        for name in re.findall(r'^ *def (test_\w+)\(', file.read_text(), re.M)
    }
    assert len(named) > 10
    assert named <= there, named - there


KIB, MIB = 1024, 1024 * 1024

#: What the page says of a limit, and where the limit is.
LIMITS = [
    ('{:,} characters,', 'mistral.definitions.definition_reading.CHARACTERS'),
    ('{:,} keys and values', 'mistral.definitions.definition_reading.NODES'),
    ('keys and values, {} levels', 'bounds.DEPTH'),
    ('{} are told; no others', 'bounds.LISTED'),
    (
        '{} requests to Mistral',
        'mistral.definitions.definition_checking._ASKED',
    ),
    ('the first {:,} characters;', 'bounds.TEXT'),
    ('; {} of them are shown', 'mistral.executions.outcome.REASON_LIMIT'),
    (
        'of the path, {} characters',
        'mistral.definitions.definition_checking._LENGTH',
    ),
    ('- {} characters; 10,000', 'mistral.triggers.schedule._LONGEST'),
    ('{:,} of its times', 'mistral.triggers.schedule._COUNTED'),
    ('``signal_body_limit`` ({:,} bytes)', 'runs.run_objects.BODY_LIMIT'),
    ('{:,} objects in a listing for all', 'runs.follow.logs._MOST'),
    ('the closest of {:,} names', 'bounds.CANDIDATES'),
    ('numbers of {} digits', 'nodes.node_reading._DIGITS'),
    (
        'Groups of hosts of a validation - {}',
        'validations.inventory._MOST_GROUPS',
    ),
    ('- {:,}, and two for each', 'signals.arrivals.SPARE'),
    ('alone, {} at a poll', 'signals.arrivals.ONE_BY_ONE'),
    ('- {:,}; beyond that, one request', 'signals.arrivals.MOST'),
    ('- {} requests a second', 'signals.watcher.PEEKS'),
    ('- {:,}; more is an error', 'objectstore.stores.MOST'),
    ('Names of plans, without Mistral - {:,}', 'plans.plan_names._NAMES'),
    ('the {} newest, by ID', 'validations.validation_ledger._READ'),
    ('; {:,} values and', 'yaml_reading.VALUES'),
    ('written out; {} levels', 'yaml_reading.DEPTH'),
    ('; {:,} characters of a number', 'yaml_reading.NUMBER'),
    ('{} links to links', 'content.tarballs._LINKS'),
    ('; {:,} files made of them', 'plans.rendering.jinja._FILES'),
    ('- {} in an operation, without', 'plans.parameters.patterns.TRIED'),
    ('- {} s of CPU and 256 MiB each', 'plans.parameters.patterns._SECONDS'),
    ('{:,} lines; of more', 'plans.deploy.comparing.LINES'),
    ('{:,} forms of them', 'masking.MOST_FORMS'),
    ('a text counting {} at least', 'masking._LEAST'),
    ('{} levels of lists and maps', 'clients.rest.DEPTH'),
    ('{:,} characters -', 'foreign._TRACEBACK'),
    ('of a plan names - {}', 'plans.deploy.deploy_records.MOST'),
    ('of JSON; {} levels', 'objectstore.parcels._DEPTH'),
    ('lead nowhere - the first {}', 'bounds.PROBLEMS'),
    ('run reads {:,} objects at most', 'signals.live.MOST'),
    ('{:,} bytes of each', 'signals.live.LONGEST'),
    ('- {:,} targets,', 'runs.fleet.operations.MOST'),
    (
        '{:,} lists and maps; a head',
        'runs.fleet.records.operation_records._PARTS',
    ),
    ('bound to {:,} characters', 'runs.fleet.records.binding.LENGTH'),
]

#: The same, of bytes or characters in KiB and MiB.
SIZES = [
    ('Record of a run - {} MiB', MIB, 'runs.records.records._LIMIT'),
    ('a reader has {} MiB of parts', MIB, 'osc.runs.following._ROOM'),
    ('- {} MiB of characters; 200,000', MIB, 'yaml_reading.LARGEST'),
    ('and {} MiB of them with aliases', MIB, 'yaml_reading.CHARACTERS'),
    ('- {} KiB of characters;', KIB, 'yaml_reading.LARGEST_PURE'),
    ('; {} KiB in all files', KIB, 'plans.content.references.REWRITTEN'),
    ('- 50,000; {} MiB each', MIB, 'content.storage.FILE_LIMIT'),
    ('refers to - {} MiB', MIB, 'plans.content.references.LARGEST'),
    ('made of them, {} MiB each', MIB, 'plans.rendering.jinja._LARGEST'),
    ('s of CPU and {} MiB each', MIB, 'plans.parameters.patterns._MEMORY'),
    ('forms of them; {} MiB', MIB, 'masking.LONGEST'),
    ('; {} Mi characters times forms', MIB, 'masking.MOST_WORK'),
    ('{} MiB of JSON;', MIB, 'objectstore.parcels._MOST_SENT'),
    ('targets, {} MiB', MIB, 'runs.fleet.records.operation_records._ORDER'),
    ('; a head {} MiB', MIB, 'runs.fleet.records.operation_records._HEAD'),
    (
        '; a request {} KiB',
        KIB,
        'runs.fleet.records.operation_records._REQUEST',
    ),
    ('; a lease {} KiB', KIB, 'objectstore.lease._LIMIT'),
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
