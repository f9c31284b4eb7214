# SPDX-License-Identifier: Apache-2.0
"""References are found, rewritten in place, and fetched once."""

import pytest
import yaml

from heat_plugins import errors
from heat_plugins import yaml_reading
from heat_plugins.content import texts
from heat_plugins.plans.content import environments
from heat_plugins.plans.content import references

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
        with pytest.raises(errors.Invalid) as caught:
            resolve(files, 'env.yaml')
        assert f'{by} refers to {path!r}, which is no path' in str(
            caught.value
        )


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
    found = resolve(
        {
            'root.yaml': ROOT,
            'env.yaml': 'parameter_defaults: {a: 1}',
            'n/own.yaml': ROOT,
        },
        environments=(
            environments.Entry(path='env.yaml'),
            environments.Entry(data=data),
        ),
        passwords={'p': 'hunter2', 'q': None},
        derived_parameters={'d': 1, 'e': 1},
        parameter_defaults={'e': 2},
        resource_registry={'OS::A::B': './n/own.yaml'},
    )
    assert [
        yaml.safe_load(found.files[key]) for key in found.environments
    ] == [
        {'parameter_defaults': {'p': 'hunter2'}},
        {'parameter_defaults': {'a': 1}},
        data,
        {
            'parameter_defaults': {'d': 1, 'e': 2},
            'resource_registry': {'OS::A::B': 'n/own.yaml'},
        },
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
