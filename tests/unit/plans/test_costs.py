# SPDX-License-Identifier: Apache-2.0
"""What plans are made of costs no more than a multiple of its size."""

import contextlib
import tarfile

import pytest

from heat_plugins import errors
from heat_plugins.content import tarballs
from heat_plugins.plans.content import references
from heat_plugins.plans.deploy import comparing
from heat_plugins.plans.rendering import jinja
from heat_plugins.plans.rendering import rendering
from tests.unit import growth
from tests.unit.plans import test_selection
from tests.unit.plans import test_sources


def template(size):
    names = ''.join(f'  a{n}: {{get_file: x{n}}}\n' for n in range(size))
    return f'heat_template_version: rocky\nresources:\n{names}'


def linked(size):
    links = (
        test_sources.special(f'a{n}', tarfile.SYMTYPE, f'a{n + 1}')
        for n in range(size)
    )
    return test_sources.tarball(*links, **{f'a{size}': b''})


def select(requires):
    paths = [f'{name}.yaml' for name in requires]
    offered = test_selection.requiring(**requires)
    test_selection.select(paths, dict.fromkeys(paths, True), offered)


def rewrite(text):
    references.rewrite(text, 'deep/a.yaml', references.LinkKind.TEMPLATE)


def unified(lines):
    comparing.Texts().unified('\n'.join(lines), '\n'.join(lines[::-1]))


@pytest.mark.parametrize(
    ('read', 'made'),
    [
        (rewrite, template),
        (lambda file: (file.seek(0), tarballs.read(file)), linked),
        (select, lambda size: {f'e{n}': [f'e{n + 1}'] for n in range(size)}),
        (references.is_template, lambda size: '"{' * size + '\n"{' * size),
        (
            lambda paths: jinja.targets(dict.fromkeys(paths, '')),
            lambda size: [f'a{n}.j2.yaml' for n in range(size)],
        ),
        (unified, lambda size: [f'{n}' for n in range(size)]),
    ],
)
def test_it_grows_no_faster_than_its_input(read, made):
    def reader(value):
        with contextlib.suppress(errors.Error):
            read(value)

    growth.check(reader, made)


def test_links_and_directories_have_a_limit(monkeypatch):
    with pytest.raises(errors.Invalid, match='link'):
        tarballs.read(linked(100))
    assert len(tarballs.read(linked(39))) == 40
    folders = (
        test_sources.special(f'a{n}', tarfile.DIRTYPE) for n in range(7)
    )
    limits = tarballs.sources.SourceLimits(files=3)
    with pytest.raises(errors.Invalid, match='more than 6 entries'):
        tarballs.read(test_sources.tarball(*folders), limits)
    # Roles times templates have an end, too.
    monkeypatch.setattr(jinja, 'FILES', 100)
    content = {f'{n}.role.j2.yaml': '' for n in range(11)}
    content['roles_data.yaml'] = '[{name: a}, {name: b}]'
    assert len(jinja.targets(content)) == 22
    content['roles_data.yaml'] = ''.join(f'- name: r{n}\n' for n in range(10))
    with pytest.raises(errors.Invalid, match='more than 100 files'):
        jinja.targets(content)


def test_a_template_that_jinja_or_python_cannot_compile_is_refused():
    for text in '{{ ' + '1' * 5000 + ' }}', '{{ a' + '|b' * 20000 + ' }}':
        with pytest.raises(errors.Invalid, match='Cannot render x') as caught:
            rendering.render({'x.j2.yaml': text.encode()})
        assert len(str(caught.value)) < 1000
    limits = rendering.RenderingLimits(source=len(text) - 1)
    with pytest.raises(errors.Invalid, match='exceed'):
        rendering.render({'x.j2.yaml': text.encode()}, limits)
