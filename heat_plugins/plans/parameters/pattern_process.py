# SPDX-License-Identifier: Apache-2.0
"""The process in which patterns are tried; see `patterns`."""

import json
import sys

from heat_plugins.plans.parameters import patterns
from heat_plugins.plans.rendering import confinement


def main() -> None:
    confinement.enter()
    pattern, text = json.load(sys.stdin)
    json.dump({'matches': patterns.matches_here(pattern, text)}, sys.stdout)


if __name__ == '__main__':
    main()
