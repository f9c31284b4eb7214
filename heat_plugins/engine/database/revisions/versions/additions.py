# SPDX-License-Identifier: Apache-2.0
"""Add when webhooks must be told, and what finds that."""

from heat_plugins.engine.database import run_tables

revision = 'heat_plugins_2'
down_revision = 'heat_plugins_1'
upgrade = run_tables.add_lacking
