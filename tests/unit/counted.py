# SPDX-License-Identifier: Apache-2.0
"""Counts in memory, as an engine that exports metrics does."""

import collections

import fixtures

from heat_plugins import metrics


class Counted(fixtures.Fixture):
    """What is counted while a test runs, by metric and value."""

    def _setUp(self):
        self._counts = collections.Counter()
        self.addCleanup(metrics.install, {})
        metrics.install(
            {
                (metric, value): self._recorder(metric, value)
                for metric in metrics.TABLE
                for value in metric.values
            }
        )

    def _recorder(self, metric, value):
        is_counter = metric.kind is metrics.MetricKind.COUNTER

        def record(number):
            self._counts[metric, value] += number if is_counter else 1

        return record

    def of(self, metric):
        """Return the counts of a metric that are not 0, by value.

        Of a histogram they are numbers of observations.
        """
        return {
            value: number
            for (each, value), number in self._counts.items()
            if each is metric and number
        }
