# SPDX-License-Identifier: Apache-2.0
"""Secrets, masked in text that is shown or stored.

Masked are given values, in the forms in which programs quote them: as they
are, as JSON (twice, too), as Python's ``repr``, quoted for a shell, in a URL,
and line by line. So are signatures in URLs, with which any reader could send
results. Not found are values that a program has encoded in another way, such
as base64, has cut, or has wrapped.

The add-on for servers (contrib/agent) has a copy of this module, and runs it
under older Pythons; a test compares the two.
"""

from collections import abc
import json
import re
import shlex
from typing import Any
from urllib import parse

#: What stands in place of a secret.
MASK = '******'

#: Shorter values are part of many a word; they are not masked.
SHORTEST = 4

#: The most forms of secrets that are sought, and the most characters of a
#: value times forms: each form is sought in all of it. Of more nothing is
#: shown.
MOST_FORMS = 2000
MOST_WORK = 2**27

# The fewest characters of a text for which the search for a form is counted.
_LEAST = 64

# Values of JSON, such as the name of a user which is a weak password as well,
# should not make every path illegible.
_SHORTEST_WITHIN = 8

# Of TempURLs, URLs that Heat signs for EC2 users, and S3; also in a URL that
# is itself part of a URL.
_SIGNATURE = re.compile(
    r'(temp_url_sig(?:=|%3D)'
    r'|(?:[?&]|&amp;|\\u0026|%26|%3F)(?:X-Amz-)?Signature(?:=|%3D))'
    # Without a choice at each character, which would be kept to go back to.
    r'(?!%26)(?=[^&\s"\'\\<>])'
    r'[^&\s"\'\\<>%]*(?:%(?!26)[^&\s"\'\\<>%]*)*',
    re.IGNORECASE,
)


def signatures(text: str) -> str:
    """Return a text without the signatures of the URLs in it."""
    return _SIGNATURE.sub(r'\1***', text)


def texts(value: Any) -> abc.Iterator[str]:
    """Give the texts and numbers of a value that are long enough to mask."""
    for each in leaves(value):
        if len(each) >= SHORTEST:
            yield each


def leaves(value: Any) -> abc.Iterator[str]:
    """Give all texts and numbers of a value of JSON, in a fixed order.

    Names are left out, and so are booleans and null.
    """
    if isinstance(value, abc.Mapping):
        for name in sorted(value, key=str):
            yield from leaves(value[name])
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from leaves(item)
    elif value is not None and not isinstance(value, bool):
        yield str(value)


def work(value: Any, forms: int) -> int:
    """Return the work of a search for texts in a value; see `MOST_WORK`.

    :param value: of JSON; its names are counted, too.
    :param forms: how many texts are searched for.
    """
    return sum(max(len(text), _LEAST) for text in _all_texts(value)) * forms


def _all_texts(value: Any) -> abc.Iterator[str]:
    """Yield each text in a value, the names of its parts as well."""
    if isinstance(value, abc.Mapping):
        for name, item in value.items():
            yield str(name)
            yield from _all_texts(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _all_texts(item)
    else:
        yield str(value)


class Mask:
    """Masks secrets, and the signatures of URLs.

    :param secrets: the texts to mask.
    :param everything: whether to mask every text, as the secrets are unknown.
    :ivar forms: the forms of the secrets that are searched for.
    :ivar everything: whether every text is masked.
    """

    def __init__(
        self, secrets: abc.Iterable[str] = (), *, everything: bool = False
    ) -> None:
        self._secrets = frozenset(secrets)
        forms: set[str] = set()
        for secret in self._secrets:
            forms.update(_forms(secret))
            if len(forms) > MOST_FORMS:
                break
        self.forms = forms
        self.everything = everything or len(forms) > MOST_FORMS
        # A secret may be a part of another one.
        self._sought = sorted(forms, key=len, reverse=True)

    def text(self, shown: str) -> str:
        """Return a text without any of the secrets."""
        return str(self.output(shown))

    def value(self, value: Any) -> Any:
        """Return a value of JSON without those that are secrets.

        Of a text in it only long secrets are masked, as in a URL.
        """
        long = [form for form in self._sought if len(form) >= _SHORTEST_WITHIN]
        return self._masked(value, long, names=False)

    def output(self, value: Any) -> Any:
        """Return an output of a server without any of the secrets."""
        return self._masked(value, self._sought, names=True)

    def _masked(
        self, value: Any, forms: abc.Sequence[str], *, names: bool
    ) -> Any:
        """Mask a value of JSON, and the names in it if that is asked for."""

        def text(shown: str) -> str:
            if self.everything:
                return shown and MASK
            for form in forms:
                shown = shown.replace(form, MASK)
            return signatures(shown)

        def masked(part: Any) -> Any:
            if isinstance(part, dict):
                return {
                    text(str(name)) if names else name: masked(item)
                    for name, item in part.items()
                }
            if isinstance(part, list):
                return [masked(item) for item in part]
            if str(part) in self._secrets:
                return MASK
            return text(part) if isinstance(part, str) else part

        is_sought = forms and not self.everything
        if is_sought and work(value, len(forms)) > MOST_WORK:
            return MASK
        return masked(value)


def _forms(secret: str) -> set[str]:
    """Return the forms in which a secret is found in text."""
    forms = set()
    lines = (
        line for line in secret.splitlines() if len(line) >= _SHORTEST_WITHIN
    )
    for text in {secret, secret.strip(), *lines}:
        quoted = json.dumps(text)
        forms |= {
            text,
            quoted[1:-1],
            json.dumps(text, ensure_ascii=False)[1:-1],
            json.dumps(quoted)[3:-3],
            repr(text)[1:-1],
            ascii(text)[1:-1],
            # Within single quotes, as Python and a shell's trace do it; and
            # within double quotes.
            shlex.quote(f' {text}')[2:-1],
            text.replace("'", r"'\''"),
            re.sub(r'([\\"$`])', r'\\\1', text),
        }
        # Half a surrogate pair is in no bytes, and in no URL.
        wire = text.encode('utf-8', 'replace')
        forms |= {
            repr(wire)[2:-1],
            parse.quote(wire, safe=''),
            parse.quote(wire),
            parse.quote_plus(wire),
        }
    return {form for form in forms if len(form) >= SHORTEST}
