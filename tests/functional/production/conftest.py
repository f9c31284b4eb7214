# SPDX-License-Identifier: Apache-2.0
"""The cloud of these tests: engines that are told dead after seconds."""

import pathlib
import shutil
import socket
import tempfile

import pytest

from tests.functional import conftest as functional

CONF = (
    functional.CONF
    + """\
rescue_interval = 5

[DEFAULT]
periodic_interval = 5
"""
)


@pytest.fixture(scope='session')
def metrics_port():
    """The port on which one process of the engines serves metrics."""
    with socket.create_server(('127.0.0.1', 0)) as server:
        port: int = server.getsockname()[1]
    yield port
    folder = pathlib.Path(tempfile.gettempdir())
    for each in folder.glob(f'heat-plugins-metrics-*-{port}'):
        shutil.rmtree(each)


@pytest.fixture(scope='session')
def cloud(request, metrics_port):
    """A cloud whose engines report every five seconds, and serve metrics."""
    conf = f'{CONF}[heat_plugins]\nmetrics_port={metrics_port}\n'
    yield from functional.clouds(request, 'production', conf)
