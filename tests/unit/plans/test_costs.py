# SPDX-License-Identifier: Apache-2.0
"""What plans are made of costs no more than a multiple of its size."""

import contextlib
import io
import tarfile

import pytest

from heat_plugins import errors
from heat_plugins.content import tarballs
from heat_plugins.content import texts
from heat_plugins.plans.content import capabilities
from heat_plugins.plans.content import environments
from heat_plugins.plans.content import references
from heat_plugins.plans.content import roles
from heat_plugins.plans.content import selection
from heat_plugins.plans.deploy import comparing
from heat_plugins.plans.rendering import jinja
from heat_plugins.plans.rendering import rendering
from tests.unit import growth


def refused(read):
    """Return a reader that may refuse."""

    def reader(value):
        with contextlib.suppress(errors.Error):
            read(value)

    return reader


def template(size):
    """Return a template with many references."""
    names = ''.join(f'  a{n}: {{get_file: x{n}}}\n' for n in range(size))
    return f'heat_template_version: rocky\nresources:\n{names}'


def spelled(text):
    references.rewrite(text, 'deep/a.yaml', references.LinkKind.TEMPLATE)


def linked(size):
    """Return a tarball of a chain of links."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode='w') as tarball:
        for number in range(size):
            member = tarfile.TarInfo(f'a{number}')
            member.type = tarfile.SYMTYPE
            member.linkname = f'a{number + 1}'
            tarball.addfile(member)
        tarball.addfile(tarfile.TarInfo(f'a{size}'))
    return stream.getvalue()


def choices(size):
    """Return a map of many environments, each of which requires the next."""
    return texts.dump(
        {
            'topics': [
                {
                    'environment_groups': [
                        {
                            'environments': [
                                {'file': f'e/{n}', 'requires': [f'e/{n + 1}']}
                                for n in range(size)
                            ]
                        }
                    ]
                }
            ]
        }
    )


def repeated(size):
    """Return a map that names one environment again and again."""
    return choices(size).replace('file: e/', 'file: same # ')


def select(text):
    paths = [f'e/{number}' for number in range(text.count('file: ') + 1)]
    offered = capabilities.read(text, paths, paths)
    plan = environments.PlanEnvironment(
        template='a',
        environments=tuple(environments.Entry(path=path) for path in paths),
    )
    selection.select(plan, offered, dict.fromkeys(paths, True))


def offered(text):
    found = capabilities.read(text, ['same'], ['same'])
    return found.environments


@pytest.mark.parametrize(
    ('read', 'made'),
    [
        (spelled, template),
        (lambda packed: tarballs.read(io.BytesIO(packed)), linked),
        (
            roles.from_roles_data,
            lambda size: ''.join(f'- name: r{n // 2}\n' for n in range(size)),
        ),
        (select, choices),
        (offered, repeated),
        (
            lambda text: references.rewrite(
                text, 'a', references.LinkKind.ENVIRONMENT
            ),
            lambda size: 'resource_registry: {a: ' + '!a ' * size + 'b}',
        ),
        (
            lambda text: rendering.outputs(
                ['a.j2.yaml'], lambda paths: dict.fromkeys(paths, text)
            ),
            lambda size: b'{% include ' * size,
        ),
        (references.is_template, lambda size: '"{' * size + '\n"{' * size),
        (
            lambda paths: jinja.targets(dict.fromkeys(paths, '')),
            lambda size: [f'a{n}.j2.yaml' for n in range(size)],
        ),
        (
            lambda lines: comparing.Texts().unified(
                '\n'.join(lines), '\n'.join(lines[::-1])
            ),
            lambda size: [f'{n}' for n in range(size)],
        ),
    ],
)
def test_it_grows_no_faster_than_its_input(read, made):
    growth.check(refused(read), made)


def test_links_and_directories_have_a_limit():
    with pytest.raises(errors.Invalid, match='more than 40 times'):
        tarballs.read(io.BytesIO(linked(100)))
    assert len(tarballs.read(io.BytesIO(linked(39)))) == 40
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode='w') as tarball:
        for number in range(7):
            member = tarfile.TarInfo(f'a{number}')
            member.type = tarfile.DIRTYPE
            tarball.addfile(member)
    limits = tarballs.sources.SourceLimits(files=3)
    stream.seek(0)
    with pytest.raises(errors.Invalid, match='more than 6 entries'):
        tarballs.read(stream, limits)


def test_roles_times_templates_have_an_end(monkeypatch):
    monkeypatch.setattr(jinja, 'FILES', 100)
    content = {f'{n}.role.j2.yaml': '' for n in range(11)}
    content['roles_data.yaml'] = '[{name: a}, {name: b}]'
    assert len(jinja.targets(content)) == 22
    content['roles_data.yaml'] = ''.join(f'- name: r{n}\n' for n in range(10))
    with pytest.raises(errors.Invalid, match='more than 100 files'):
        jinja.targets(content)


@pytest.mark.parametrize(
    'text',
    [
        '{{ ' + '1' * 5000 + ' }}',
        '{{ a' + '|b' * 20000 + ' }}',
        '{% if a %}' * 200 + '{% endif %}' * 200,
        '{% set a = ' + '[' * 500 + ']' * 500 + ' %}',
    ],
)
def test_a_template_that_jinja_or_python_cannot_compile_is_refused(text):
    with pytest.raises(errors.Invalid, match='Cannot render x') as caught:
        rendering.render({'x.j2.yaml': text.encode()})
    assert len(str(caught.value)) < 1000


def test_no_more_is_sent_to_jinja_than_its_limit():
    limits = rendering.RenderingLimits(source=100)
    with pytest.raises(errors.Invalid, match='exceed 100 characters'):
        rendering.render({'x.j2.yaml': b'x' * 101}, limits)
