# SPDX-License-Identifier: Apache-2.0
"""The process in which templates are rendered; see `rendering`.

It reads a map of files, and writes a map of what was made of them, or of an
``error``.
"""

import json
import sys

from heat_plugins import errors
from heat_plugins.plans.rendering import confinement
from heat_plugins.plans.rendering import jinja


def main() -> None:
    memory, output = confinement.enter()
    text = _rendered(memory)
    if len(text) > output:
        text = _error(f'The Jinja templates render more than {output} bytes')
    sys.stdout.write(text)


def _rendered(memory: int) -> str:
    try:
        return json.dumps({'files': jinja.render(json.load(sys.stdin))})
    except errors.Invalid as exc:
        return _error(str(exc))
    except MemoryError:
        return _error(
            f'The Jinja templates need more than {memory // 1024**2} MiB of '
            'memory'
        )


def _error(said: str) -> str:
    return json.dumps({'error': said})


if __name__ == '__main__':
    main()
