# SPDX-License-Identifier: Apache-2.0
"""Find phrases that make a reader stop, and name what to write instead.

``words.py LIST`` reads the files that git tracks, as the TOML file LIST says:

``files``
    Patterns of the paths to read.
``[[phrase]]``
    ``find``, a regular expression for whole words in any case, and ``write``,
    what to write in its place.
``[[allow]]``
    ``path``, a pattern of paths, optionally ``phrase`` (the ``find`` of one of
    the above), and ``why`` the phrase may stand there.

It prints each place, and fails if there is one, or if an entry of the
allow-list allows nothing.
"""

import dataclasses
import fnmatch
import pathlib
import re
import subprocess
import sys
import tomllib

# What may stand between two words of a phrase: spaces, or the end of a line
# with the mark of a comment, or the quotes of adjacent strings.
_GAP = (
    r"(?:\s|\s*\n\s*(?:#+|['\"]|\.\.)?\s*"
    r"|\s*['\"]\s*\n\s*f?['\"]\s*)+"
)


@dataclasses.dataclass(frozen=True)
class Phrase:
    """A phrase to avoid, and what to write instead."""

    find: str
    write: str

    @property
    def pattern(self):
        """Match the phrase, also across the ends of lines."""
        words = self.find.replace(' ', _GAP)
        return re.compile(rf'(?<![\w-])(?:{words})(?![\w-])', re.IGNORECASE)


@dataclasses.dataclass(frozen=True)
class Permit:
    """Where a phrase may stand; without a phrase, any of them."""

    path: str
    why: str
    phrase: str | None = None

    def covers(self, path, phrase):
        """Say whether a phrase may stand in a file."""
        return fnmatch.fnmatch(path, self.path) and (
            self.phrase is None or self.phrase == phrase.find
        )


def tracked(root, patterns):
    """Yield the paths that git tracks and one of some patterns matches."""
    listed = subprocess.run(
        ['git', '-C', str(root), 'ls-files', '-z'],
        check=True,
        capture_output=True,
        text=True,
    )
    for path in listed.stdout.split('\0'):
        if any(fnmatch.fnmatch(path, pattern) for pattern in patterns):
            yield path


def find(text, phrases):
    """Yield line number, words and phrase of each place in a text."""
    for phrase in phrases:
        for match in phrase.pattern.finditer(text):
            line = text.count('\n', 0, match.start()) + 1
            yield line, ' '.join(match[0].split()), phrase


def main(listed):
    """Print what is found; return the exit code."""
    options = tomllib.loads(listed.read_text())
    phrases = [Phrase(**each) for each in options['phrase']]
    permits = [Permit(**each) for each in options.get('allow', ())]
    root, used, places = listed.parent.parent, set(), 0
    for path in tracked(root, options['files']):
        text = (root / path).read_text()
        for line, words, phrase in sorted(
            find(text, phrases), key=lambda place: place[0]
        ):
            covering = [each for each in permits if each.covers(path, phrase)]
            used.update(covering)
            if not covering:
                places += 1
                print(f'{path}:{line}: "{words}"; write: {phrase.write}')
    unused = [each for each in permits if each not in used]
    for each in unused:
        print(
            f'{listed.name}: nothing in {each.path} needs to be allowed: '
            f'{each.phrase or "any phrase"}'
        )
    print(f'words: {places} to replace')
    return int(bool(places or unused))


if __name__ == '__main__':
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve()))
