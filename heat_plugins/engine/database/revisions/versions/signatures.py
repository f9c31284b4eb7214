# SPDX-License-Identifier: Apache-2.0
"""Add the signatures by which answers that come by heat-api-cfn are found."""

from heat_plugins.engine.database import run_tables

revision = 'heat_plugins_3'
down_revision = 'heat_plugins_2'
upgrade = run_tables.add_lacking
