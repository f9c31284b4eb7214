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

#: The most forms of secrets that are sought, the most characters of a value
#: in which that is done, and the most of the product of both: each form is
#: sought in all of the value. Of more nothing is shown.
MOST_FORMS = 2000
LONGEST = 4 * 2**20
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

    :param value: of JSON.
    :param forms: how many texts are searched for.
    """
    return sum(map(_weight, leaves(value))) * forms


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
        self._long = {form for form in forms if len(form) >= _SHORTEST_WITHIN}

    def text(self, shown: str) -> str:
        """Return a text without any of the secrets."""
        return self._masked(shown, self.forms)

    def value(self, value: Any) -> Any:
        """Return a value of JSON without those that are secrets.

        Of a text in it only long secrets are masked, as in a URL.
        """
        if self._is_too_much(value, self._long):
            return MASK
        return self._without_secrets(value)

    def output(self, value: Any) -> Any:
        """Return an output of a server without any of the secrets."""
        if self._is_too_much(value, self.forms):
            return MASK
        return self._without_forms(value)

    def _without_secrets(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {
                name: self._without_secrets(item)
                for name, item in value.items()
            }
        if isinstance(value, list):
            return [self._without_secrets(item) for item in value]
        if str(value) in self._secrets:
            return MASK
        if isinstance(value, str):
            return self._masked(value, self._long)
        return value

    def _without_forms(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {
                self.text(str(name)): self._without_forms(item)
                for name, item in value.items()
            }
        if isinstance(value, list):
            return [self._without_forms(item) for item in value]
        if isinstance(value, str):
            return self.text(value)
        return MASK if str(value) in self._secrets else value

    def _is_too_much(self, value: Any, forms: abc.Collection[str]) -> bool:
        """Say whether a search for forms in all texts takes too long."""
        if isinstance(value, str) or not forms or self.everything:
            # `_masked` asks itself.
            return False
        return sum(map(_weight, _texts(value))) * len(forms) > MOST_WORK

    def _masked(self, text: str, forms: abc.Collection[str]) -> str:
        return signatures(self._without(text, forms))

    def _without(self, text: str, forms: abc.Collection[str]) -> str:
        if self.everything:
            return text and MASK
        if not forms:
            return text
        if len(text) > LONGEST or _weight(text) * len(forms) > MOST_WORK:
            return MASK
        # Two secrets may overlap: what either of them covers is masked.
        covers: dict[int, int] = {}
        for form in forms:
            start = text.find(form)
            while start >= 0:
                end = start + len(form)
                covers[start] = max(end, covers.get(start, 0))
                start = text.find(form, end)
        shown, done = [], 0
        for start, end in sorted(covers.items()):
            if start >= done:
                shown += [text[done:start], MASK]
            done = max(done, end)
        return ''.join([*shown, text[done:]])


def _weight(text: str) -> int:
    return max(len(text), _LEAST)


def _texts(value: Any) -> abc.Iterator[str]:
    """Give all texts of a value of JSON, names too."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield str(name)
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, str):
        yield value


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
