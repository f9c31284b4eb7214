# SPDX-License-Identifier: Apache-2.0
"""Add how long the outputs of a run are."""

from heat_plugins.engine.database import run_tables

revision = 'heat_plugins_4'
down_revision = 'heat_plugins_3'
upgrade = run_tables.add_lacking
