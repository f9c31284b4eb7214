# SPDX-License-Identifier: Apache-2.0
"""Find links of HTML pages that lead to no file, or to no place in one.

``links.py FOLDER`` reads all pages below a folder, as Sphinx has built them,
and needs no network: it follows the links within the folder alone. It prints
each broken one, and fails if there is one.
"""

import html.parser
import pathlib
import sys
from urllib import parse

# Pages that Sphinx adds, whose links are not ours.
_GENERATED = ('genindex.html', 'search.html')


class _Page(html.parser.HTMLParser):
    """The links of a page, and the places that others may link to."""

    def __init__(self, text):
        super().__init__()
        self.links = []
        self.places = set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if name == 'id' and value:
                self.places.add(value)
            if name in ('href', 'src') and value:
                self.links.append(value)


def broken(folder):
    """Yield page and link of each link within a folder that is broken."""
    pages = {
        path.resolve(): _Page(path.read_text())
        for path in sorted(folder.rglob('*.html'))
    }
    for path, page in pages.items():
        if path.name in _GENERATED:
            continue
        for link in page.links:
            found = parse.urlsplit(link)
            if found.scheme or found.netloc:
                continue
            target = path
            if found.path:
                target = (path.parent / parse.unquote(found.path)).resolve()
            place = parse.unquote(found.fragment)
            if not target.exists() or (
                place and target in pages and place not in pages[target].places
            ):
                yield path, link


def main(folder):
    """Print the broken links; return the exit code."""
    found = list(broken(folder))
    for path, link in found:
        print(f'{path}: {link} leads nowhere', file=sys.stderr)
    return int(bool(found))


if __name__ == '__main__':
    sys.exit(main(pathlib.Path(sys.argv[1])))
