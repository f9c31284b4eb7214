# SPDX-License-Identifier: Apache-2.0
"""The examples for pipelines, as those run them."""

import pathlib
import sys

import yaml

FOLDER = pathlib.Path(__file__).parents[1] / 'contrib/examples/pipelines'

KINDS = ('playbook.yaml', 'gitlab-ci.yml', 'backup.py')

#: Ansible refuses other locales, and has no use for an inventory here.
ENV = {
    'LC_ALL': 'C.UTF-8',
    'ANSIBLE_LOCALHOST_WARNING': 'False',
    'ANSIBLE_INVENTORY_UNPARSED_WARNING': 'False',
}


def argv(kind):
    """Return the command that runs an example."""
    path = FOLDER / kind
    if kind == 'backup.py':
        return [sys.executable, str(path)]
    if kind == 'playbook.yaml':
        program = pathlib.Path(sys.executable).with_name('ansible-playbook')
        return [str(program), str(path)]
    # A runner's shell stops at the first line that fails.
    lines = yaml.safe_load(path.read_text())['backup']['script']
    return ['bash', '-eo', 'pipefail', '-c', '\n'.join(lines)]
