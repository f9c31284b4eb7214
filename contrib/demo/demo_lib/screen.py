# SPDX-License-Identifier: Apache-2.0
"""What the audience sees."""

import shutil
import sys
import textwrap
import time

_MARGIN = ' ' * 4

#: Seconds between two lines about the same wait where lines are for good.
_PLAIN_PAUSE = 10


class Screen:
    """Prints; on a terminal with colours, and with a line that moves."""

    def __init__(self) -> None:
        self._terminal = sys.stdout.isatty()
        self._live = False
        self._waited = ''
        self._waited_at = 0.0

    def title(self, text: str) -> None:
        self._print(self._coloured('1', text))

    def step(self, text: str) -> None:
        self._waited = ''
        self._print('')
        self._print(self._coloured('1;36', text))

    def say(self, text: str) -> None:
        """Say a fact."""
        for line in text.splitlines():
            self._print(
                textwrap.fill(
                    line,
                    78,
                    initial_indent='  ',
                    subsequent_indent=_MARGIN,
                    break_long_words=False,
                    break_on_hyphens=False,
                )
            )

    def command(self, line: str) -> None:
        """Show a command as one would type it, on as many lines."""
        line = line.replace('\n', ' \\\n      ')
        self._print('  ' + self._coloured('1;32', f'$ {line}'))

    def output(self, text: str) -> None:
        """Show what a command has printed."""
        if text.strip():
            self._print(textwrap.indent(text.rstrip('\n'), _MARGIN))

    def wait(self, text: str, seconds: float) -> None:
        """Show what is being waited for, and since when.

        To be called again and again; where lines cannot be overwritten, only
        some of them are printed.
        """
        if self._terminal:
            line = f'  {seconds:3.0f} s  {text}'
            room = shutil.get_terminal_size().columns - 1
            sys.stdout.write('\r\x1b[K\x1b[33m' + line[:room] + '\x1b[0m')
            sys.stdout.flush()
            self._live = True
            return
        now = time.monotonic()
        if text != self._waited or now > self._waited_at + _PLAIN_PAUSE:
            self._print(f'  {seconds:3.0f} s  {text}')
            self._waited, self._waited_at = text, now

    def trouble(self, text: str) -> None:
        self._print('')
        for line in text.splitlines():
            self._print(self._coloured('1;31', line))

    def _coloured(self, code: str, text: str) -> str:
        return f'\x1b[{code}m{text}\x1b[0m' if self._terminal else text

    def _print(self, line: str) -> None:
        if self._live:
            sys.stdout.write('\r\x1b[K')
            self._live = False
        print(line, flush=True)
