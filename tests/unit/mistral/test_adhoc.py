# SPDX-License-Identifier: Apache-2.0
"""What Mistral is given of an ad-hoc action."""

import testtools

from heat_plugins.mistral.definitions import structured


class WriteTest(testtools.TestCase):
    def test_a_value_that_comes_twice_is_written_twice(self):
        # As a template's json parameter does that is got in two places;
        # Mistral knows no anchors.
        shared = {'region': 'north'}
        text = structured.write_action(
            'tell',
            {'base': 'std.echo', 'base-input': {'a': shared, 'b': shared}},
        )
        self.assertEqual(2, text.count('region: north'))
        self.assertNotIn('&', text)
        self.assertTrue(text.startswith("version: '2.0'\n"))
