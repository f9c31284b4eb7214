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
# A reference that leads nowhere is a warning, and `make docs` allows none.
nitpicky = True
# `make links` asks these only; what is shown as an example answers nowhere.
linkcheck_ignore = [r'https?://[^/]*(192\.0\.2|example|invalid|localhost)']
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
