# SPDX-License-Identifier: Apache-2.0
r"""Foreign text, made safe to show: for one line, or for a block of lines.

Foreign is what servers, services and users send. A terminal obeys some
characters (ESC sequences, C1 controls), others forge a line of a log or turn
round how text reads (bidirectional overrides), and some cannot be written at
all (half a surrogate pair). Each of them is shown as Python escapes it, such
as ``\x1b``, ``\n`` or ``\u202e``; all other characters stay. A backslash
stays too, so the escaped form is for people and not to be parsed.
"""

from collections import abc
import contextlib
import logging
import re
import textwrap
import traceback
import unicodedata

#: The most characters of a line, and what replaces the rest of a text.
LINE = 2000
ELLIPSIS = '…'

# The most characters of a line of a log: it may list many names; and of a
# traceback, whose exception may quote all that a service has sent.
_LOGGED = 8 * LINE
_TRACEBACK = 4 * _LOGGED

_BEYOND = re.compile('[\U00010000-\U0010ffff]')


def line(text: object, limit: int | None = LINE) -> str:
    """Return foreign text as one line without control characters.

    White space at its end is left out.

    :param text: the text, or what `str` makes one of, such as an exception.
    :param limit: the most characters of the result; None for no limit.
    """
    return _shown(str(text).rstrip(), limit, '')


def block(text: object, limit: int | None = None) -> str:
    r"""Return foreign text as lines without control characters.

    It keeps line feeds and tabs, and writes ``\r\n`` as a line feed.

    :param text: see `line`.
    :param limit: the most characters of the result; None for no limit.
    """
    return _shown(str(text).replace('\r\n', '\n'), limit, '\n\t')


def stored(text: object, limit: int = LINE) -> str:
    """Return foreign text as a line that any database of Heat stores.

    MySQL's ``utf8``, which many of them use, ends at U+FFFF.

    :param text: see `line`.
    :param limit: the most characters of the result.
    """
    safe = _BEYOND.sub(
        lambda each: each[0].encode('unicode_escape').decode('ascii'),
        str(text)[: limit + 1],
    )
    return line(safe, limit)


def brief(exc: BaseException) -> str:
    """Return the kind of an error and its first line.

    The rest may quote a statement of a database, with all its values.
    """
    return f'{type(exc).__name__}: {line(str(exc).partition(chr(10))[0])}'


@contextlib.contextmanager
def errors(
    show: abc.Callable[[str], str] = block,
) -> abc.Iterator[None]:
    """Make the texts of exceptions that pass safe; their types stay.

    :param show: makes a text safe.
    """
    try:
        yield
    except Exception as exc:
        message = str(exc)
        safe = show(message)
        if safe != message:
            exc.args = (safe,)
            if hasattr(exc, 'message'):
                exc.message = safe
        raise


def logger(name: str) -> logging.Logger:
    """Return the logger of a module; it makes all messages safe."""
    named = logging.getLogger(name)
    guard(named)
    return named


def guard(log: logging.Logger) -> None:
    """Keep a logger's messages to a line each, with their controls escaped."""
    log.addFilter(_FILTER)


class _Filter(logging.Filter):
    """Makes each record one line; a traceback follows it, indented."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Make a message of the log safe for a terminal."""
        message = line(record.getMessage(), _LOGGED)
        if record.exc_info and record.exc_info[0] is not None:
            trace = ''.join(traceback.format_exception(*record.exc_info))
            # Indented, none of it can pass for a line of the log.
            message += '\n' + textwrap.indent(
                block(trace.rstrip(), _TRACEBACK), '    '
            )
            record.exc_info = None
        record.msg, record.args = message, None
        return True


_FILTER = _Filter()


def _shown(text: str, limit: int | None, kept: str) -> str:
    """Return text from elsewhere, cut, and with its controls escaped."""
    if limit is not None:
        cut = len(text) > limit
        text = text[:limit]
    if not text.isprintable():
        text = text.translate(
            {
                ord(each): each.encode('unicode_escape').decode('ascii')
                for each in set(text)
                # Of what is not printable only spaces, such as the
                # ideographic one, are harmless.
                if not (
                    each.isprintable()
                    or unicodedata.category(each) == 'Zs'
                    or each in kept
                )
            }
        )
    if limit is not None and (cut or len(text) > limit):
        return text[: max(limit - len(ELLIPSIS), 0)] + ELLIPSIS
    return text
