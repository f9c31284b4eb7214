# SPDX-License-Identifier: Apache-2.0
"""How Sphinx builds the documentation."""

project = 'heat-plugins'
copyright = 'heat-plugins contributors'
extensions = ['oslo_config.sphinxext']
