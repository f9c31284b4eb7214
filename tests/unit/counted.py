# SPDX-License-Identifier: Apache-2.0
"""Counts in memory, as an engine that exports metrics does."""

import collections
import functools
import itertools

import fixtures

from heat_plugins import metrics


class Counted(fixtures.Fixture):
    """What is counted while a test runs, by metric and value."""

    def _setUp(self):
        self._counts = collections.Counter()
        self.addCleanup(metrics.install, {})
        metrics.install(
            {
                each: functools.partial(self._record, each)
                for metric in metrics.TABLE
                for each in itertools.product([metric], metric.values)
            }
        )

    def _record(self, each, number):
        is_counter = each[0].kind is metrics.MetricKind.COUNTER
        self._counts[each] += number if is_counter else 1

    def of(self, metric):
        """Return the counts of a metric that are not 0, by value.

        Of a histogram they are numbers of observations.
        """
        return {
            value: number
            for (each, value), number in self._counts.items()
            if each is metric and number
        }
