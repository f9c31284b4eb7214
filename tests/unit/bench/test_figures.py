# SPDX-License-Identifier: Apache-2.0
"""The page of performance."""

import json

from tests.bench import record
from tests.functional import base


def test_the_page_shows_the_figures_that_it_has(tmp_path):
    page = base.ROOT / 'doc/source/performance'
    found = json.loads((page / 'figures.json').read_text())
    record.render(found, tmp_path, print)
    for name in ('goals', 'waiting', 'times', 'costs', 'live', 'quick'):
        file = f'{name}.csv'
        assert (page / file).read_text() == (tmp_path / file).read_text()
    for name in ('machine', 'troubles'):
        file = f'{name}.rst'
        assert (page / file).read_text() == (tmp_path / file).read_text()
