# SPDX-License-Identifier: Apache-2.0
"""Mistral: API, engine, executor, event engine, notifier and cron."""

# Chooses threads over eventlet; it has to come before all else.
import mistral.cmd  # isort: skip  # noqa: F401

import sys
from typing import Any

import jsonschema
from mistral import config
from mistral.api import app  # noqa: F401  registers options
from mistral.api import service as api_service
from mistral.db.v2 import api as db_api
from mistral.engine import engine_server
from mistral.executors import executor_server
from mistral.lang import base as lang_base
from mistral.notifiers import notification_server
from mistral.services import action_manager
from mistral.services import periodic_server
from mistral.services import workflows
from oslo_config import cfg
from oslo_db import exception
from oslo_log import log as logging

from minicloud_lib.services import broker
from minicloud_lib.services import mistral_event_engine
from minicloud_lib.services import serving
from minicloud_lib.services import sqlite

CONF = cfg.CONF
LOG = logging.getLogger(__name__)


def main(*files: str) -> None:
    broker.install()
    lang_base.jsonschema = _Schemas
    config.parse_args(
        [part for file in files for part in ('--config-file', file)]
    )
    logging.setup(CONF, 'Mistral')
    # Its migrations are not made for SQLite.
    db_api.setup_db()
    sqlite.prepare(CONF.database.connection)
    _populate()
    services: list[Any] = [
        engine_server.get_oslo_service(),
        executor_server.get_oslo_service(),
        mistral_event_engine.service(),
        notification_server.get_oslo_service(),
        periodic_server.get_oslo_service(),
        # The API last: when its port is open the others are there.
        api_service.WSGIService('mistral_api'),
    ]
    for service in services:
        service.start()
    serving.until_stopped(*(service.stop for service in reversed(services)))


def _populate() -> None:
    """Do what ``mistral-db-manage populate`` does, if it can be done."""
    action_manager.sync_db()
    try:
        workflows.sync_db()
    except exception.DBReferenceError:
        # Mistral replaces the workflows that are preinstalled, and its
        # database keeps any that a cron trigger names.
        LOG.warning('Preinstalled workflows stay as they are')


class _Schemas:
    """Stands in for jsonschema where Mistral reads workflow definitions.

    Mistral checks the schema itself, too, for each part of a definition that
    it reads. That takes seven of the ten seconds of a start.
    """

    ValidationError = jsonschema.ValidationError

    @staticmethod
    def validate(data: Any, schema: Any) -> None:
        validator = jsonschema.validators.validator_for(schema)(schema)
        error = jsonschema.exceptions.best_match(validator.iter_errors(data))
        if error is not None:
            raise error


if __name__ == '__main__':
    serving.run(main, *sys.argv[1:])
