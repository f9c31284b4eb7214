# SPDX-License-Identifier: Apache-2.0
"""The distribution for Horizon, whose pages tests/functional shows.

Horizon is not in this environment, so its modules are read and not imported.
"""

import ast
import pathlib
import re
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[3]
FOLDER = ROOT / 'contrib/dashboard'
PACKAGE = FOLDER / 'heat_plugins_dashboard'
PROJECT = tomllib.loads((FOLDER / 'pyproject.toml').read_text())


def trees():
    return {
        path: ast.parse(path.read_text()) for path in PACKAGE.rglob('*.py')
    }


def test_each_package_and_template_is_in_the_wheel():
    folders = {path.parent for path in PACKAGE.rglob('*.py')}
    packages = {'.'.join(each.relative_to(FOLDER).parts) for each in folders}
    setuptools = PROJECT['tool']['setuptools']
    assert {*setuptools['packages']} == packages
    (pattern,) = setuptools['package-data']['heat_plugins_dashboard']
    assert {*PACKAGE.rglob('*.html')} == {*PACKAGE.glob(pattern)}


def test_it_imports_no_other_face():
    faces = {'osc', 'resources', 'mistral_actions', 'checks', 'engine'}
    for path, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                room = f'{node.module}.{node.names[0].name}'.split('.')
                if room[0] == 'heat_plugins':
                    assert room[1] not in faces, path


def test_each_form_that_changes_something_bears_the_token():
    for path in PACKAGE.rglob('*.html'):
        for form in re.findall('<form.*?</form>', path.read_text(), re.S):
            is_post = 'method="post"' in form
            assert is_post == ('{% csrf_token %}' in form), path
            # AngularJS would keep a form without an action from being sent.
            assert 'action="' in form, path


def test_it_has_the_release_of_heat_plugins():
    release = re.search(
        r'^version = (.+)$', (ROOT / 'setup.cfg').read_text(), re.M
    )
    assert PROJECT['project']['version'] == release[1]
