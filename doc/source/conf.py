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
    'oslo_config.sphinxext',
]
# Two dashes begin an option, also where help texts stand as prose.
smartquotes_action = 'qe'
html_theme = 'furo'
html_title = 'heat-plugins'
html_static_path = ['_static']
html_css_files = ['tables.css']

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
