# SPDX-License-Identifier: Apache-2.0
"""How long to look for input that breaks something.

The same few examples each time, in seconds; with ``BAD_INPUT=long`` in the
environment other ones each time, for as long as an hour. ``BAD_INPUT=few`` is
for other Heats and Pythons, after a search with the newest ones: a fifth of
the examples; see also examples.py.
"""

import os

import hypothesis

hypothesis.settings.register_profile(
    'quick',
    derandomize=True,
    max_examples=50,
    database=None,
    deadline=None,
    suppress_health_check=list(hypothesis.HealthCheck),
)
hypothesis.settings.register_profile(
    'few', hypothesis.settings.get_profile('quick'), max_examples=10
)
hypothesis.settings.register_profile(
    'long',
    hypothesis.settings.get_profile('quick'),
    derandomize=False,
    max_examples=20000,
)
hypothesis.settings.load_profile(os.environ.get('BAD_INPUT', 'quick'))
