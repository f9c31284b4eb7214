# SPDX-License-Identifier: Apache-2.0
"""The deployment that the page for authors of templates shows."""

import pathlib
import re
import textwrap

import yaml

from tests.unit.resources import deployments

PAGE = (
    pathlib.Path(__file__).resolve().parents[3]
    / 'doc/source/software-deployments.rst'
).read_text()


def shown():
    """Return the resources in the page's blocks of YAML, by name."""
    found = {}
    for block in re.findall(
        r'code-block:: yaml\n\n((?:(?: {4}.*)?\n)+)', PAGE
    ):
        found.update(yaml.safe_load(textwrap.dedent(block)))
    return found


class DocumentedTest(deployments.DeploymentTestCase):
    def template(self):
        parts = {name: shown()[name] for name in ('config', 'deployment')}
        parts['server'] = deployments.template()['resources']['server']
        return {
            'heat_template_version': '2021-04-16',
            'parameters': {'who': {'type': 'string', 'default': 'world'}},
            'resources': parts,
        }

    def test_it_works(self):
        self.answer = {'greeting': 'Hello, world'}
        stack = self.created(self.template())
        resource = stack['deployment']
        assert resource.FnGetAtt('greeting') == 'Hello, world'
        assert resource.FnGetAtt('signal_transport') == 'TEMP_URL_POLL'
        self.delete(stack)
        assert len(self.handed) == 2
        self.assert_nothing_left()

    def test_it_fails_as_it_says(self):
        _, reason = self.fails(
            self.template(), {'problem': 'no name to greet'}
        )
        assert 'error output "problem" has a value' in reason
