# SPDX-License-Identifier: Apache-2.0
"""Values against the types and constraints that Heat has told."""

import testtools

from heat_plugins import errors
from heat_plugins.plans.parameters import constraints
from heat_plugins.plans.parameters import parameters
from heat_plugins.plans.parameters import patterns
from heat_plugins.plans.parameters import secrecy


def wanted(type_, *others, hidden=False, **limits):
    """Return a parameter, and others of its name with other limits."""
    return parameters.Effective(
        parameter=parameters.Parameter(
            name='Size', type=type_, hidden=hidden, constraints=limits
        ),
        others=tuple(
            parameters.Parameter(name='Size', type=type_, constraints=one)
            for one in others
        ),
    )


class FittedTest(testtools.TestCase):
    def fits(self, value, parameter, as_=None):
        found = constraints.fitted(value, parameter, patterns.Tries())
        self.assertEqual(value if as_ is None else as_, found)
        self.assertIs(type(value if as_ is None else as_), type(found))

    def refused(self, value, parameter):
        exc = self.assertRaises(
            errors.Invalid,
            constraints.fitted,
            value,
            parameter,
            patterns.Tries(),
        )
        return str(exc)

    def test_a_text_stands_for_a_value_of_any_type(self):
        self.fits('7', wanted('number'), 7)
        self.fits('1.5', wanted('number'), 1.5)
        self.fits('yes', wanted('boolean'), True)
        self.fits('off', wanted('boolean'), False)
        self.fits('{"a": 1}', wanted('json'), {'a': 1})
        self.fits('a: [1, 2]', wanted('json'), {'a': [1, 2]})
        self.fits('a,b', wanted('comma_delimited_list'))

    def test_what_yaml_has_made_of_a_text_becomes_text_again(self):
        self.fits(7, wanted('string'), '7')
        self.fits(True, wanted('string'), 'true')
        self.fits([1, 'b'], wanted('comma_delimited_list'), ['1', 'b'])

    def test_a_value_of_another_type_does_not_fit(self):
        self.assertIn('not a number', self.refused('many', wanted('number')))
        for value, type_ in (
            (True, 'number'),
            ('nan', 'number'),
            ('1e100000', 'number'),
            ('perhaps', 'boolean'),
            (2, 'boolean'),
            ('just words', 'json'),
            ('{', 'json'),
            (7, 'json'),
            ({'a': 1}, 'string'),
            ({'a': 1}, 'comma_delimited_list'),
            ([['a']], 'comma_delimited_list'),
        ):
            self.refused(value, wanted(type_))

    def test_null_is_no_value(self):
        self.assertIn('unset', self.refused(None, wanted('string')))

    def test_limits_of_a_number_are_part_of_it(self):
        few = wanted('number', MinValue=1, MaxValue=5)
        self.fits(1, few)
        self.fits(5, few)
        self.assertIn('below 1', self.refused(0, few))
        self.assertIn('above 5', self.refused(6, few))

    def test_a_number_may_have_to_be_a_multiple(self):
        odd = wanted('number', Step=2, Offset=1)
        self.fits(3, odd)
        self.refused(4, odd)

    def test_a_number_is_compared_as_one_with_those_allowed(self):
        self.fits('2', wanted('number', AllowedValues=[1, '2']), 2)
        self.refused(3, wanted('number', AllowedValues=[1, 2]))

    def test_only_allowed_words(self):
        colour = wanted('string', AllowedValues=['red', 'blue'])
        self.fits('red', colour)
        self.assertIn('red, blue', self.refused('green', colour))

    def test_each_member_of_a_list_has_to_be_allowed(self):
        colours = wanted('comma_delimited_list', AllowedValues=['red', 'blue'])
        self.fits('red, blue', colours)
        self.refused('red,green', colours)

    def test_a_pattern_has_to_match_all_of_it(self):
        digits = wanted('string', AllowedPattern='[0-9]+')
        self.fits('123', digits)
        self.refused('123x', digits)

    def test_the_length_of_texts_lists_and_maps(self):
        for type_, short, long in (
            ('string', 'a', 'abc'),
            ('comma_delimited_list', 'a', 'a,b,c'),
            ('json', {'a': 1}, {'a': 1, 'b': 2, 'c': 3}),
        ):
            limits = wanted(type_, MinLength=2, MaxLength=2)
            self.assertIn('below 2', self.refused(short, limits))
            self.assertIn('above 2', self.refused(long, limits))

    def test_what_any_template_with_the_name_demands(self):
        both = wanted('number', {'MaxValue': 3}, MaxValue=5)
        self.fits(3, both)
        self.refused(4, both)

    def test_the_author_s_own_words_are_told(self):
        said = self.refused(
            9, wanted('number', MaxValue=5, ConstraintDescription='a few')
        )
        self.assertIn('(a few)', said)

    def test_a_hidden_value_is_not_quoted(self):
        said = self.refused(
            'my-password', wanted('string', hidden=True, MaxLength=3)
        )
        self.assertNotIn('my-password', said)
        self.assertIn('Size', said)


class PatternTest(testtools.TestCase):
    """Patterns are the template's, and may be anything."""

    def setUp(self):
        super().setUp()
        self.patch(patterns, '_SECONDS', 1)

    def test_all_of_a_text_has_to_match(self):
        for pattern in ('[a-z]+', '^[a-z]+$', '.*', r'(a|b)+c?', r'\w{1,3}'):
            self.assertTrue(patterns.Tries().matches(pattern, 'ab'), pattern)
        for pattern in ('a', '[b]*', '(a)', 'c', r'(?=ab)'):
            self.assertFalse(patterns.Tries().matches(pattern, 'ab'), pattern)

    def test_one_that_takes_for_ever_is_refused(self):
        for pattern in ('(a+)+$', '(a|aa)+$', '.*.*.*.*.*.*.*.*.*.*=b'):
            text = 'a' * 400 + '!'
            error = self.assertRaises(
                errors.Invalid, patterns.Tries().matches, pattern, text
            )
            self.assertIn(pattern, str(error))
            self.assertNotIn(text, str(error))

    def test_one_that_is_none_matches_nothing(self):
        for pattern in ('(', '[z-a]+', 'a{9999999999}'):
            self.assertFalse(patterns.Tries().matches(pattern, 'a'))

    def test_nothing_is_generated_that_may_not_fit(self):
        template = (
            'parameters:\n'
            '  slow: {type: string, hidden: true, constraints: '
            "[{allowed_pattern: '(([a-zA-Z0-9])+)+!'}]}\n"
            '  quick: {type: string, hidden: true, constraints: '
            "[{allowed_pattern: '([a-zA-Z0-9]+)'}]}\n"
        )
        self.assertEqual(
            ('quick',), secrecy.passwords_wanted(template, 'x.yaml')
        )
