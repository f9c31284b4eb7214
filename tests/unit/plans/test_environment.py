# SPDX-License-Identifier: Apache-2.0
"""plan-environment.yaml is read, and written as it was."""

import dataclasses
import functools

import pytest

from heat_plugins import errors
from heat_plugins import jobs
from heat_plugins.objectstore import stores
from heat_plugins.plans.content import environments
from heat_plugins.plans.content import plans
from heat_plugins.plans.deploy import deploy_records
from tests.unit.plans import fakes

FULL = """\
version: 1.0
name: shop
description: |
  A shop
template: root.yaml
environments:
  - {path: base.yaml}
  - data: {parameter_defaults: {a: 1}}
  - {path: ./environments//more.yaml}
  - {path: ./base.yaml}
parameter_defaults: {size: 3, script: "#!/bin/sh\\nrun\\n", day: "2020-01-01"}
passwords: {Key: hunter2, Other: null}
derived_parameters: {cores: "2"}
resource_registry: {"OS::A::B": b.yaml}
workflow_parameters: {w: {x: 1}}
post_deployment:
  - {workflow: shop.configure, input: {region: north}}
  - action: std.noop
required_validations: [prep, prep, "pre - deployment"]
"""

read = environments.PlanEnvironment.from_text


def test_every_section_is_read_and_written_the_same():
    found = read(FULL)
    assert (found.version, found.description) == ('1.0', 'A shop')
    # Of one that comes twice the last counts.
    assert found.enabled == ('environments/more.yaml', 'base.yaml')
    assert found.environments[0].data == {'parameter_defaults': {'a': 1}}
    assert found.passwords == {'Key': 'hunter2', 'Other': None}
    assert read(found.to_text()) == found
    workflow, action = steps = deploy_records.steps(found)
    assert (workflow.kind, workflow.name) == ('workflow', 'shop.configure')
    assert workflow.input == {'region': 'north'}
    assert action == jobs.Call(kind=jobs.CallKind.ACTION, name='std.noop')
    required = ('prep', 'pre - deployment')
    assert deploy_records.required(found) == required
    for value in ('hunter2', 'size', 'north'):
        assert value not in repr((found, steps))
    bare = read('template: a')
    assert deploy_records.steps(bare) == deploy_records.required(bare) == ()


@pytest.mark.parametrize(
    'text',
    [
        '[1]',
        'a: [',
        'template: ../root.yaml',
        'template: [1]',
        'name: x',
        'template: a\nenvironments: {a: b}',
        'template: a\nenvironments: [base.yaml]',
        'template: a\nenvironments: [{path: /etc/x}]',
        'template: a\nenvironments: [{data: 1}]',
        'template: a\nenvironments: [{path: a, data: {}}]',
        'template: a\nparameter_defaults: [1]',
        'template: a\npasswords: hunter2',
    ],
)
def test_what_is_no_such_file_is_refused(text):
    with pytest.raises(errors.Invalid) as caught:
        read(text)
    assert 'hunter2' not in str(caught.value)


@pytest.mark.parametrize(
    'wrong',
    [
        'shop.configure',
        '{}',
        "{workflow: ''}",
        '{workflow: 7}',
        '{input: {}}',
        '{workflow: a, action: b}',
        '{workflow: a, input: [b]}',
        '{workflow: a, inputs: {}}',
    ],
)
def test_a_wrong_step_is_refused_with_its_place(wrong):
    plan = read(f'template: a\npost_deployment: [action: std.noop, {wrong}]')
    with pytest.raises(errors.Invalid, match='Number 2'):
        deploy_records.steps(plan)
    with pytest.raises(errors.Invalid):
        deploy_records.steps(read('template: a\npost_deployment: {a: b}'))


@pytest.mark.parametrize(
    'wrong',
    ['prep', '[1]', '{a: b}', '[""]', str([f'g{n}' for n in range(101)])],
)
def test_required_validations_are_a_list_of_groups(wrong):
    text = f'template: root.yaml\nrequired_validations: {wrong}\n'
    with pytest.raises(errors.Invalid):
        deploy_records.required(read(text))
    files = fakes.content(**{environments.PATH: text.encode()})
    with pytest.raises(errors.Invalid):
        fakes.Cloud().plans.create('plan', files)


def test_nothing_is_written_that_could_not_be_read_again():
    deep = functools.reduce(lambda inner, _: [inner], range(5000), 1)
    for value in [1] * 200_000, deep:
        found = environments.PlanEnvironment(
            template='a', parameter_defaults={'a': value}
        )
        with pytest.raises(errors.Invalid):
            found.to_text()


def test_a_hash_tells_contents_apart():
    plan = fakes.Cloud().plans.create('plan', fakes.content())

    def digest(**etags):
        entries = {
            path: stores.ListedObject(name=path, size=1, etag=etag)
            for path, etag in etags.items()
        }
        return dataclasses.replace(plan, entries=entries).content_hash

    one = digest(a='1', b='2')
    assert digest(b='2', a='1') == one
    for other in ({'a': '1'}, {'a': '2', 'b': '1'}, {'a': '1', 'c': '2'}):
        assert digest(**other) != one


def test_names_are_those_that_heat_and_stores_take():
    for name in ('abc', 'A.b-c_1', 'x' * 180):
        assert plans.check_name(name) == name
    for name in ('ab', 'heat-plugins-x', '1abc', 'a/b', 'ä' * 3, 'x' * 181):
        with pytest.raises(errors.Invalid):
            plans.check_name(name)
