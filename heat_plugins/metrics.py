# SPDX-License-Identifier: Apache-2.0
"""Metrics that heat-engine shows to its operator.

`TABLE` names each metric once; the documentation, the alert rules and the
dashboard are held to it. Where something happens, one line counts it. That
costs a read of an empty dictionary unless this process exports metrics, see
`install`: commands and most engines do not.

A metric has at most one label, whose values the table lists. So no name of a
tenant, stack, server or resource can become one.
"""

from collections import abc
import dataclasses
import enum
import math
from typing import Final


class MetricKind(enum.StrEnum):
    """The type of a metric, as Prometheus knows it."""

    COUNTER = 'counter'
    GAUGE = 'gauge'
    HISTOGRAM = 'histogram'


# Compared by identity, which is fast.
@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Metric:
    """One line of the table.

    :ivar name: as Prometheus shows it.
    :ivar help: one sentence.
    :ivar label: the name of the label; empty if there is none.
    :ivar values: all values of the label.
    :ivar across: how the gauges of processes on one host become one: ``sum``
        or ``max``.
    """

    name: str
    kind: MetricKind
    help: str
    label: str = ''
    values: tuple[str, ...] = ('',)
    across: str = 'sum'


#: The upper bounds of a histogram's buckets, in seconds.
BUCKETS: Final = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 60.0, math.inf)

WAITING = Metric(
    name='heat_plugins_deployments_waiting',
    kind=MetricKind.GAUGE,
    help='Deployments whose results heat-engine polls for: all but those '
    'with ZAQAR_SIGNAL.',
)
OLDEST = Metric(
    name='heat_plugins_deployments_oldest_wait_seconds',
    kind=MetricKind.GAUGE,
    help='Seconds for which an engine process has waited for the result that '
    'it has awaited longest; 0 if it awaits none.',
    across='max',
)
RESULTS = Metric(
    name='heat_plugins_deployment_results_total',
    kind=MetricKind.COUNTER,
    help='Deployments to servers that have ended: as the server says, or '
    'without its result, by a timeout or as they were withdrawn.',
    label='result',
    values=('complete', 'failed', 'unanswered'),
)
POLLS = Metric(
    name='heat_plugins_polls_total',
    kind=MetricKind.COUNTER,
    help='Polls for signals, one for all deployments of a root stack.',
    label='result',
    values=('ok', 'failed'),
)
STORE = Metric(
    name='heat_plugins_store_request_seconds',
    kind=MetricKind.HISTOGRAM,
    help='Seconds that a request to the object store took, by the class of '
    'its HTTP status; denied: 401 or 403; none: there was no answer.',
    label='status',
    values=('2xx', '3xx', '4xx', 'denied', '5xx', 'none'),
)
RESCUED = Metric(
    name='heat_plugins_rescued_total',
    kind=MetricKind.COUNTER,
    help='Resources and stacks of dead engines that heat-engine has resumed.',
    label='kind',
    values=('resource', 'stack'),
)
RUNS = Metric(
    name='heat_plugins_runs_total',
    kind=MetricKind.COUNTER,
    help='Runs that heat-engine has led to their end.',
    label='outcome',
    values=('complete', 'failed', 'timed-out', 'cancelled'),
)
TARGETS = Metric(
    name='heat_plugins_run_targets_total',
    kind=MetricKind.COUNTER,
    help='Targets of runs that heat-engine has seen end, each attempt of one.',
    label='outcome',
    values=('complete', 'failed', 'timed-out', 'cancelled'),
)
RUNNING = Metric(
    name='heat_plugins_runs_in_progress',
    kind=MetricKind.GAUGE,
    help="Runs in progress in Heat's database, the same on all hosts.",
    label='state',
    values=('running', 'paused', 'waiting-for-approval', 'stopping'),
    across='max',
)
OLDEST_RUN = Metric(
    name='heat_plugins_runs_oldest_seconds',
    kind=MetricKind.GAUGE,
    help='Seconds since the oldest run in progress was ordered that waits for '
    'no user; 0 if there is none.',
    across='max',
)
STUCK = Metric(
    name='heat_plugins_runs_stuck',
    kind=MetricKind.GAUGE,
    help='Runs that heat-engine leads and fails to continue; it retries.',
)
TICKS = Metric(
    name='heat_plugins_schedule_ticks_total',
    kind=MetricKind.COUNTER,
    help='Ticks of schedules: started, late (started more than a minute '
    'after their time), skipped for the sake of another one, or missed.',
    label='outcome',
    values=('started', 'late', 'skipped', 'missed'),
)
NOTIFICATIONS_FAILED = Metric(
    name='heat_plugins_notifications_failed_total',
    kind=MetricKind.COUNTER,
    help='Notifications that heat-engine gave up to send.',
)
SCANS_FAILED = Metric(
    name='heat_plugins_scans_failed_total',
    kind=MetricKind.COUNTER,
    help="Scans of heat-engine's database that failed, by the name of their "
    'thread.',
    label='scan',
    values=(
        'heat-plugins-rescue',
        'heat-plugins-traversals',
        'heat-plugins-schedules',
        'heat-plugins-run-rescue',
        'heat-plugins-run-retention',
        'heat-plugins-notices',
    ),
)

#: All metrics, in the order in which the documentation shows them.
TABLE: Final = (
    WAITING,
    OLDEST,
    RESULTS,
    POLLS,
    STORE,
    RESCUED,
    RUNS,
    TARGETS,
    RUNNING,
    OLDEST_RUN,
    STUCK,
    TICKS,
    NOTIFICATIONS_FAILED,
    SCANS_FAILED,
)

#: Takes a number for one metric and one value of its label.
Recorder = abc.Callable[[float], object]

_recorders: dict[tuple[Metric, str], Recorder] = {}


def install(recorders: abc.Mapping[tuple[Metric, str], Recorder]) -> None:
    """Export all counts from now on; an empty mapping ends that.

    :param recorders: one for each metric and value of its label.
    """
    _recorders.clear()
    _recorders.update(recorders)


def count(metric: Metric, value: str = '', by: float = 1) -> None:
    """Add to a counter.

    :param value: of the label; what the table does not list is not counted.
    """
    observe(metric, by, value)


def observe(metric: Metric, number: float, value: str = '') -> None:
    """Set a gauge, or take seconds into a histogram.

    :param value: see `count`.
    """
    recorder = _recorders.get((metric, value))
    if recorder is not None:
        recorder(number)
