# SPDX-License-Identifier: Apache-2.0
"""Metrics of two heat-engines with two processes each, on one host."""

from urllib import request

import psutil
import pytest

from tests.functional import base
from tests.functional.production import waits

WAITING = 'heat_plugins_deployments_waiting'
OLDEST = 'heat_plugins_deployments_oldest_wait_seconds'
COMPLETE = 'heat_plugins_deployment_results_total{result="complete"}'
REQUESTS = 'heat_plugins_store_request_seconds_count{status="2xx"}'


def scrape(port):
    """Return what Prometheus would read; nothing while no process serves."""
    url = f'http://127.0.0.1:{port}/metrics'
    try:
        with request.urlopen(url, timeout=10) as answer:
            lines = answer.read().decode().splitlines()
    except OSError:
        return {}
    pairs = [line.rsplit(' ', 1) for line in lines if line[0] != '#']
    return {name: float(value) for name, value in pairs}


def holder(port):
    """Return the process that listens on a port, or None."""
    listening = [
        each.pid
        for each in psutil.net_connections('tcp4')
        if each.laddr.port == port and each.status == psutil.CONN_LISTEN
    ]
    return listening[0] if listening else None


@pytest.mark.long
def test_metrics_are_sums_and_survive_the_process_that_serves_them(
    cloud, stacks, metrics_port
):
    before = base.until(lambda: scrape(metrics_port))
    stack = stacks(waits.template())
    waits.all_wait(stack)
    shown = base.until(
        lambda: (
            (now := scrape(metrics_port)).get(WAITING) == waits.COUNT and now
        )
    )
    assert shown[OLDEST] > 0
    waits.answer(stack)
    stack.wait('CREATE_COMPLETE')
    complete = before[COMPLETE] + waits.COUNT
    after = base.until(
        lambda: (now := scrape(metrics_port)).get(WAITING) == 0 and now
    )
    assert after[COMPLETE] == complete
    assert after[REQUESTS] > before[REQUESTS]
    killed = holder(metrics_port)
    psutil.Process(killed).kill()
    base.until(lambda: holder(metrics_port) not in (None, killed), 60)
    last = base.until(lambda: scrape(metrics_port))
    assert last[COMPLETE] == complete
    assert last[REQUESTS] >= after[REQUESTS]
