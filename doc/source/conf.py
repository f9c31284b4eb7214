# SPDX-License-Identifier: Apache-2.0
"""How Sphinx builds the documentation."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / 'ext'))

project = 'heat-plugins'
copyright = 'heat-plugins contributors'
extensions = [
    'cliff.sphinxext',
    'heat_plugins_reference',
    'openstackdocstheme',
    'oslo_config.sphinxext',
]
# Two dashes begin an option, also where help texts stand as prose.
smartquotes_action = 'qe'
html_theme = 'openstackdocs'
# No version is named: the pages are about the tree that they lie in.
openstackdocs_auto_version = False
openstackdocs_auto_name = False
openstackdocs_bug_project = ''

man_pages = [
    (
        'reference/commands',
        'openstack-software-deployment',
        'commands for software deployments and plans',
        ['heat-plugins contributors'],
        1,
    ),
]

# What all commands of `openstack` have; said once, at the top of the page.
autoprogram_cliff_ignored = [
    '--help',
    '--format',
    '--column',
    '--quote',
    '--noindent',
    '--max-width',
    '--fit-width',
    '--print-empty',
    '--sort-column',
    '--sort-ascending',
    '--sort-descending',
    '--prefix',
]
