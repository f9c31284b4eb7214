# SPDX-License-Identifier: Apache-2.0
"""``openstack software deployment timeline``."""

import argparse
from collections import abc
from typing import Any

from rich import console

from heat_plugins.osc import columns
from heat_plugins.osc import command_line
from heat_plugins.osc import common
from heat_plugins.osc import private_files
from heat_plugins.runs import summary
from heat_plugins.timeline import chart
from heat_plugins.timeline import chart_reading
from heat_plugins.timeline import plain_text
from heat_plugins.timeline import svg

_HEADERS = (
    'Kind',
    'Resource',
    'What',
    'State',
    'Started',
    'Ended',
    'Duration',
    'Reason',
)

_DRAWINGS = {'.svg': svg.draw, '.html': svg.page}


def output(what: str) -> command_line.Argument:
    """Return the option for the file of a drawing."""
    return command_line.value(
        '--output',
        '<file>',
        f'Draw {what} into a file: .svg, or .html for a page. The file is '
        'self-contained; an existing one is replaced',
        type=command_line.file_of(*_DRAWINGS),
    )


class Drawing(common.Report):
    """A command that draws a chart, or shows something else."""

    @staticmethod
    def drawn(
        parsed_args: argparse.Namespace, drawn: chart.Chart
    ) -> common.Shown:
        """Draw a chart into a file if the user wants that; return it."""
        if parsed_args.output:
            path = parsed_args.output
            with common.access('write', path):
                private_files.write(path, _DRAWINGS[path.suffix](drawn))
        return _HEADERS, Bars(drawn)

    def produce_output(
        self,
        parsed_args: argparse.Namespace,
        column_names: abc.Sequence[str],
        data: Any,
    ) -> int:
        """Draw a chart for a terminal, or print its bars as a table."""
        if not isinstance(data, Bars):
            return super().produce_output(parsed_args, column_names, data)
        self.progress.stop()
        if parsed_args.formatter != 'table' or parsed_args.columns:
            for note in data.chart.notes:
                self.log.warning('%s', note)
            return super().produce_output(parsed_args, column_names, data)
        if parsed_args.output:
            return 0
        shown = console.Console(file=self.app.stdout, highlight=False)
        plain = not (shown.encoding or '').lower().startswith('utf')
        for line in plain_text.draw(
            data.chart,
            shown.width,
            plain_text.ASCII if plain else plain_text.BLOCKS,
            local=parsed_args.local_time,
        ):
            text = line.plain.encode('ascii', 'replace').decode()
            shown.print(text if plain else line, soft_wrap=True, markup=False)
        return 0


class ShowTimeline(Drawing):
    """Show a stack's life: its deployments, runs and workflow executions.

    With -f json, yaml, csv or value it lists them.
    """

    example = 'shop --output shop.svg --since 7d'

    arguments = (
        command_line.STACK,
        output('the timeline'),
        command_line.flag(
            '--unfold',
            'Show the resources of nested stacks, such as the deployments of '
            'a group',
        ),
        command_line.flag(
            '--all-resources', 'Also show other resources, such as servers'
        ),
        command_line.SINCE,
        command_line.number(
            '--limit',
            '<number>',
            'Maximum number of runs to show; older ones are left out '
            '(default: 200)',
            default=200,
        ),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        manager = self.app.client_manager
        drawn = chart_reading.read(
            common.orchestration(manager),
            common.runs(manager).list,
            parsed_args.stack,
            chart_reading.ChartFilter(
                unfold=parsed_args.unfold,
                everything=parsed_args.all_resources,
                since=parsed_args.since,
                runs=parsed_args.limit,
            ),
        )
        return self.drawn(parsed_args, drawn)


class Bars(list[Any]):
    """The rows of a list, and the chart that they are of."""

    def __init__(self, timeline: chart.Chart) -> None:
        super().__init__(
            (
                row.kind.value,
                row.path,
                bar.label,
                bar.word,
                summary.time(int(bar.start)),
                None if bar.end is None else summary.time(int(bar.end)),
                columns.Seconds(int(bar.until(timeline.now) - bar.start)),
                bar.explanation(timeline.now),
            )
            for row in timeline.rows
            for bar in sorted(row.bars, key=lambda bar: bar.start)
        )
        self.chart = timeline
