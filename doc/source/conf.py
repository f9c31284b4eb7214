# SPDX-License-Identifier: Apache-2.0
"""How Sphinx builds the documentation."""

project = 'heat-plugins'
copyright = 'heat-plugins contributors'
extensions = ['openstackdocstheme', 'oslo_config.sphinxext']
html_theme = 'openstackdocs'
# No version is named: the pages are about the tree that they lie in.
openstackdocs_auto_version = False
openstackdocs_auto_name = False
openstackdocs_bug_project = ''
