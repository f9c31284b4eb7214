# SPDX-License-Identifier: Apache-2.0
"""plan-environment.yaml and the references of files are read and written."""

import dataclasses
import functools
import re

import pytest
import yaml

from heat_plugins import errors
from heat_plugins import jobs
from heat_plugins import yaml_reading
from heat_plugins.content import texts
from heat_plugins.objectstore import stores
from heat_plugins.plans.content import environments
from heat_plugins.plans.content import plans
from heat_plugins.plans.content import references
from heat_plugins.plans.deploy import deploy_records
from tests.unit.plans import fakes

ROOT = 'heat_template_version: 2021-04-16\n'
BINARY = b'\xff\xd8'


def resolve(files, *enabled, template='root.yaml', asked=None, **more):
    """Resolve the files of a plan.

    :param asked: a list that gets the paths that are fetched.
    """

    def fetch(paths):
        if asked is not None:
            asked.extend(paths)
        return {
            path: files[path].encode() if files[path] != BINARY else BINARY
            for path in {*paths} & files.keys()
        }

    entries = tuple(environments.Entry(path=path) for path in enabled)
    values = {'template': template, 'environments': entries, **more}
    return references.resolve(environments.PlanEnvironment(**values), fetch)


def test_files_are_keyed_by_paths_from_the_root_and_fetched_once():
    asked = []
    files = {
        'root.yaml': f'{ROOT}resources: {{a: {{type: ./n/one.yaml}}}}\n',
        'n/one.yaml': (
            f'{ROOT}resources:\n'
            '  b: {type: two.yaml}\n'
            '  c: {properties: {config: {get_file: ../s/run.sh}}}\n'
            '  d: {get_file: one.yaml}\n'
        ),
        'n/two.yaml': f'{ROOT}x: {{get_file: stack}}',
        'n/stack': f'{ROOT}x: {{get_file: ../s/run.sh}}\n',
        's/run.sh': 'x: {get_file: nope}',
    }
    found = resolve(files, asked=asked)
    assert sorted(asked) == sorted(files)
    assert {*found.files} == {*files} - {'root.yaml'}
    assert 'type: n/one.yaml' in found.template
    one = yaml.safe_load(found.files['n/one.yaml'])['resources']
    assert one['b']['type'] == 'n/two.yaml'
    assert one['c']['properties']['config'] == {'get_file': 's/run.sh'}
    assert one['d'] == {'get_file': 'n/one.yaml'}
    assert 'get_file: s/run.sh' in found.files['n/stack']
    # It is no template.
    assert found.files['s/run.sh'] == files['s/run.sh']
    assert found.warnings == ()
    # A root that another file refers to is sent as a file, too.
    root = f'{ROOT}x: {{type: root.yaml}}'
    assert resolve({'root.yaml': root}).files == {'root.yaml': root}


def test_all_else_of_a_file_means_the_same():
    text = (
        '# a comment\n'
        f'{ROOT}'
        'resources:\n'
        '  "a": &a\n'
        '    type: {}\n'
        '    properties: {{when: 2020-01-01, on: yes, n: 0644, 1: "1"}}\n'
        '  b: *a\n'
        '  c: {{<<: *a, properties: {{get_file: {}}}}}\n'
        '  d: {{after: "type: ../x/no.yaml\\n  é\\n", f: 1.50, g: ~}}\n'
    )
    written = text.format('../x/é.yaml', '../x/c')
    files = {'a/root.yaml': written, 'x/é.yaml': ROOT, 'x/c': ''}
    found = resolve(files, template='a/root.yaml')
    assert set(found.files) == {'x/é.yaml', 'x/c'}
    expected = text.format('x/é.yaml', 'x/c')
    load = yaml_reading.load
    assert load(found.template) == load(expected)
    # A file whose references need no change stays as it is.
    text = f'# a comment\n{ROOT}x: {{type:   a.yaml}}  # odd\n'
    assert resolve({'root.yaml': text, 'a.yaml': ROOT}).template == text


def test_registries_lead_to_templates():
    files = {
        'root.yaml': ROOT,
        'e/env.yaml': (
            'resource_registry:\n'
            '  OS::Own::A: ../n/one.yaml\n'
            '  OS::Own::*: two.yaml\n'
            '  OS::Own::B: OS::Heat::None\n'
            '  OS::Own::D:\n'
            '  resources:\n'
            '    server: {OS::Own::C: three.yaml, hooks: pre-create}\n'
            '    other: {restricted_actions: replace}\n'
            'parameter_defaults: {type: none.yaml, get_file: nope}\n'
        ),
        'n/one.yaml': f'{ROOT}x: {{get_file: here}}',
        'n/here': '',
        'e/two.yaml': ROOT,
        'e/three.yaml': ROOT,
    }
    found = resolve(files, 'e/env.yaml')
    assert {*found.files} == {*files} - {'root.yaml'}
    assert found.environments == ('e/env.yaml',)
    text = found.files['e/env.yaml']
    registry = yaml.safe_load(text)['resource_registry']
    assert registry['OS::Own::A'] == 'n/one.yaml'
    assert registry['OS::Own::*'] == 'e/two.yaml'
    assert registry['resources']['server']['hooks'] == 'pre-create'


@pytest.mark.parametrize(
    'path',
    ['../x.yaml', '/etc/x.yaml', 'a/../../x.yaml', 'file:///etc/x.yaml'],
)
def test_a_reference_out_of_the_plan_is_refused(path):
    for root, environment, by in (
        (f'x: {{type: {path}}}', '{}', 'root.yaml'),
        (f'x: {{get_file: "{path}"}}', '{}', 'root.yaml'),
        ('', f'resource_registry: {{A::B: {path}}}', 'env.yaml'),
    ):
        files = {'root.yaml': f'{ROOT}{root}', 'env.yaml': environment}
        said = re.escape(f'{by} refers to {path!r}, which is no path')
        with pytest.raises(errors.Invalid, match=said):
            resolve(files, 'env.yaml')


def test_missing_and_binary_files():
    files = {
        'root.yaml': f'{ROOT}x: {{get_file: n/nope}}',
        'env.yaml': 'resource_registry: {OS::A::B: lost.yaml}',
    }
    assert {*resolve(files, 'env.yaml').warnings} == {
        'env.yaml refers to lost.yaml, which the plan does not have',
        'root.yaml refers to n/nope, which the plan does not have',
    }
    # The root template and environments are necessary.
    for path in ('env.yaml', 'root.yaml'):
        del files[path]
        with pytest.raises(errors.Invalid, match=path):
            resolve(files, 'env.yaml')
    files = {'root.yaml': f'{ROOT}x: {{get_file: a.yaml}}'}
    found = resolve({**files, 'a.yaml': BINARY})
    assert found.files['a.yaml'] == '/9g=\n'
    files = {'root.yaml': f'{ROOT}x: {{type: a.yaml}}', 'a.yaml': BINARY}
    with pytest.raises(errors.Invalid, match=r'a\.yaml is not in UTF-8'):
        resolve(files)


def test_what_is_set_goes_over_files_and_those_over_passwords():
    data = {'parameter_defaults': {'b': 2}}
    entries = {'path': 'env.yaml'}, {'data': data}
    environment = 'parameter_defaults: {a: 1}'
    found = resolve(
        {'root.yaml': ROOT, 'env.yaml': environment, 'n/own.yaml': ROOT},
        environments=tuple(environments.Entry(**each) for each in entries),
        passwords={'p': 'hunter2', 'q': None},
        derived_parameters={'d': 1, 'e': 1},
        parameter_defaults={'e': 2},
        resource_registry={'OS::A::B': './n/own.yaml'},
    )
    registry = {'resource_registry': {'OS::A::B': 'n/own.yaml'}}
    read = [yaml.safe_load(found.files[key]) for key in found.environments]
    assert read == [
        {'parameter_defaults': {'p': 'hunter2'}},
        {'parameter_defaults': {'a': 1}},
        data,
        {'parameter_defaults': {'d': 1, 'e': 2}, **registry},
    ]
    assert 'n/own.yaml' in found.files


def test_what_is_too_large_for_heat_loses_comments_and_layout():
    text = (
        f'{ROOT}'
        'resources:\n'
        '  a: &a\n'
        '    type: n/one.yaml\n'
        "    properties: {day: 2020-01-01, on: yes, n: 0644, s: '1'}\n"
        '  b: {<<: *a}\n'
        '  c: {properties: {config: {get_file: run.sh}}}\n'
    ) + f'# {"x" * 98}\n' * 6000
    files = {
        'root.yaml': text,
        'n/one.yaml': text.replace('n/one', 'two').replace('run', '../run'),
        'n/two.yaml': ROOT,
        'run.sh': '# x\n' * 200_000,
        'env.yaml': 'parameter_defaults: {a: 2020-01-01}  # x\n',
    }
    found = resolve(files, 'env.yaml')
    assert found.files['run.sh'] == files['run.sh']
    assert texts.load(found.template, '') == texts.load(text, '')
    expected = texts.load(text.replace('n/one', 'n/two'), '')
    one = found.files['n/one.yaml']
    assert texts.load(one, '') == expected
    assert len(one) < 1000
    assert '#' not in found.files['env.yaml']


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


def test_a_wrong_step_is_refused_with_its_place():
    for wrong in (
        *('shop.configure', '{}', "{workflow: ''}", '{workflow: 7}'),
        *('{input: {}}', '{workflow: a, action: b}'),
        *('{workflow: a, input: [b]}', '{workflow: a, inputs: {}}'),
    ):
        text = f'template: a\npost_deployment: [action: std.noop, {wrong}]'
        with pytest.raises(errors.Invalid, match='Number 2'):
            deploy_records.steps(read(text))
    with pytest.raises(errors.Invalid):
        deploy_records.steps(read('template: a\npost_deployment: {a: b}'))


def test_required_validations_are_a_list_of_groups():
    many = str([f'g{n}' for n in range(101)])
    for wrong in ('prep', '[1]', '{a: b}', '[""]', many):
        text = f'template: root.yaml\nrequired_validations: {wrong}\n'
        with pytest.raises(errors.Invalid):
            deploy_records.required(read(text))
    files = fakes.content(**{environments.PATH: text.encode()})
    with pytest.raises(errors.Invalid):
        fakes.Cloud().plans.create('plan', files)


def test_nothing_is_written_that_could_not_be_read_again(monkeypatch):
    monkeypatch.setattr(yaml_reading, 'VALUES', 1000)
    deep = functools.reduce(lambda inner, _: [inner], range(5000), 1)
    for value in [1] * 1000, deep:
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

    one, swapped = digest(a='1', b='2'), digest(a='2', b='1')
    assert digest(b='2', a='1') == one
    assert one not in (digest(a='1'), swapped, digest(a='1', c='2'))


def test_names_are_those_that_heat_and_stores_take():
    for name in ('abc', 'A.b-c_1', 'x' * 180):
        assert plans.check_name(name) == name
    for name in ('ab', 'heat-plugins-x', '1abc', 'a/b', 'ä' * 3, 'x' * 181):
        with pytest.raises(errors.Invalid):
            plans.check_name(name)
