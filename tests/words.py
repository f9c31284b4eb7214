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


def pattern(phrase):
    """Return a pattern of a phrase, also across the ends of lines."""
    words = phrase['find'].replace(' ', _GAP)
    return re.compile(rf'(?<![\w-])(?:{words})(?![\w-])', re.IGNORECASE)


def covers(permit, path, phrase):
    """Say whether a phrase may stand in a file."""
    return (
        fnmatch.fnmatch(path, permit['path'])
        and permit.get('phrase', phrase['find']) == phrase['find']
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
        if any(fnmatch.fnmatch(path, each) for each in patterns):
            yield path


def main(listed):
    """Print what is found; return the exit code."""
    options = tomllib.loads(listed.read_text())
    phrases = [(each, pattern(each)) for each in options['phrase']]
    unused = options.get('allow', [])
    permits, places = list(unused), 0
    root = listed.parent.parent
    for path in tracked(root, options['files']):
        text = (root / path).read_text()
        for phrase, expression in phrases:
            for match in expression.finditer(text):
                covering = [p for p in permits if covers(p, path, phrase)]
                unused = [each for each in unused if each not in covering]
                if not covering:
                    places += 1
                    line = text.count('\n', 0, match.start()) + 1
                    words = ' '.join(match[0].split())
                    write = phrase['write']
                    print(f'{path}:{line}: "{words}"; write: {write}')
    for each in unused:
        print(
            f'{listed.name}: nothing in {each["path"]} needs to be allowed: '
            f'{each.get("phrase", "any phrase")}'
        )
    print(f'words: {places} to replace')
    return int(bool(places or unused))


if __name__ == '__main__':
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve()))
