# SPDX-License-Identifier: Apache-2.0
"""What fits an input, and what does not."""

import testtools

from heat_plugins import errors
from heat_plugins.runs.targets import targets

FITS = {
    'Number': [('7', 7), ('1.5', 1.5), (7, 7), (' 7 ', 7), ('-1e3', -1000.0)],
    'Boolean': [('yes', True), ('0', False), (True, True), ('False', False)],
    'Json': [('{"a": 1}', {'a': 1}), ([1], [1]), ('[]', [])],
    'CommaDelimitedList': [('a, b', ['a', 'b']), (['a'], ['a']), ('', [])],
    'String': [('x', 'x'), (7, '7'), (True, 'true'), ('', '')],
}
UNFIT = {
    'Number': ['x', '', True, [1], 'nan', 'inf', None],
    'Boolean': ['maybe', '', 2, None],
    'Json': ['{', '7', '"x"', 7, None],
    'CommaDelimitedList': [7, {'a': 1}, None],
    'String': [['x'], {'a': 1}, None],
}


class TypeTest(testtools.TestCase):
    def test_what_fits_is_converted(self):
        for kind, pairs in FITS.items():
            for value, expected in pairs:
                found = targets.converted(value, kind)
                assert expected == found, (kind, value)
                assert type(expected) is type(found), (kind, value)

    def test_what_does_not_fit_is_refused(self):
        for kind, values in UNFIT.items():
            for value in values:
                self.assertRaises(ValueError, targets.converted, value, kind)


class ValuesTest(testtools.TestCase):
    DECLARED = [
        {'name': 'a', 'default': 1, 'type': 'Number'},
        {'name': 'b'},
        {'name': 'deploy_action'},
    ]

    def values(self, given, current):
        return targets.values(self.DECLARED, given, current)

    def test_what_is_given_goes_before_the_stacks_before_the_default(self):
        assert self.values({'a': '3'}, {'a': 2, 'b': 'x'}) == {
            'a': 3,
            'b': 'x',
        }
        assert self.values({}, {'a': 2, 'b': ''}) == {'a': 2, 'b': ''}
        assert self.values({'b': 'x'}, {}) == {'a': 1, 'b': 'x'}

    def test_what_nobody_has_given_is_missing(self):
        exc = self.assertRaises(errors.Refused, self.values, {}, {})
        assert 'input "b" has no value' in str(exc)

    def test_what_is_ours_to_say_cannot_be_given(self):
        exc = self.assertRaises(
            errors.Refused, self.values, {'b': '', 'deploy_action': 'X'}, {}
        )
        assert 'no input "deploy_action"' in str(exc)
