# SPDX-License-Identifier: Apache-2.0
"""Actions made from operations, as Mistral reads, makes and runs them."""

from collections import abc
import sys
from typing import Any

from mistral_lib import actions
from mistral_lib.utils import inspect_utils
import testtools

from heat_plugins import errors
from heat_plugins.mistral_actions import making
from tests.unit.mistral_actions import base


def cut_down(self, tree, tools=('axe',), depth=1, *, tell=print):
    """Cut a tree down.

    :param tree: which.
    :raises errors.Refused: it is too hard for the tools
        that there are.
    :returns: what is left.
    """


def plant(
    self,
    tree: str,
    count: int = 1,
    weight: float | None = None,
    marks: abc.Mapping[str, bool] | None = None,
    roots: abc.Collection[str] = (),
    more: Any = None,
):
    """Plant a tree."""


def _call(context, operation, arguments):
    if arguments['tree'] == 'oak':
        raise errors.Refused('too hard')
    return operation, arguments


CutDown = making.ActionMaker(__name__, _call)(cut_down)
Plant = making.ActionMaker(__name__, _call)(plant)


def planted(**arguments):
    """Return the action; Mistral makes it of the arguments by their names."""
    return Plant(**{'tree': 'ash', **arguments})


class MakingTest(testtools.TestCase):
    def test_mistral_reads_its_arguments_and_what_it_is_for(self):
        self.assertEqual(
            'tree, tools=["axe"], depth=1',
            inspect_utils.get_arg_list_as_str(CutDown.__init__),
        )
        self.assertEqual(
            ['tree', 'tools', 'depth'],
            inspect_utils.get_arg_list(CutDown.__init__),
        )
        self.assertEqual(
            'Cut a tree down.\n\n:param tree: which.\n:returns: what is left.',
            inspect_utils.get_docstring(CutDown),
        )

    def test_its_arguments_are_its_attributes_and_nothing_else_is(self):
        self.assertEqual(
            {'tree': 'ash', 'tools': ('axe',), 'depth': 2},
            vars(CutDown('ash', depth=2)),
        )
        self.assertEqual({}, inspect_utils.get_public_fields(CutDown))

    def test_a_call_with_other_arguments_is_none(self):
        self.assertRaises(TypeError, CutDown)
        self.assertRaises(TypeError, CutDown, tree='ash', tell=print)

    def test_its_path_is_that_of_the_module_that_has_it(self):
        self.assertIs(CutDown, sys.modules[CutDown.__module__].CutDown)

    def test_an_error_is_a_result(self):
        found = base.run(CutDown(tree='oak'))
        self.assertIsInstance(found, actions.Result)
        self.assertEqual(
            {'code': 'refused', 'message': 'too hard'}, found.error
        )

    def test_an_input_of_another_type_is_an_error(self):
        for name, value, wanted in (
            ('tree', {'a': 1}, 'str'),
            ('tree', None, 'str'),
            ('count', '3.5', 'int'),
            ('count', True, 'int'),
            ('weight', 'x', 'float | None'),
            ('marks', {'a': 'yes'}, 'Mapping[str, bool] | None'),
            ('roots', {'a': 'b'}, 'Collection[str]'),
            ('roots', [['a']], 'Collection[str]'),
        ):
            message = f'plant: {name} must be of type {wanted}'
            found = base.run(planted(**{name: value}))
            self.assertEqual(
                {'code': 'invalid', 'message': message}, found.error
            )

    def test_inputs_are_converted(self):
        defaults = {
            'tree': 'ash',
            'count': 1,
            'weight': None,
            'marks': None,
            'roots': [],
            'more': None,
        }
        for given, expected in (
            (
                {'count': 2, 'weight': 3, 'marks': {'a': True}, 'more': [1]},
                {'count': 2, 'weight': 3, 'marks': {'a': True}, 'more': [1]},
            ),
            # YAML and YAQL may have texts for numbers and lists.
            (
                {'tree': 7, 'count': '2', 'weight': '3', 'roots': 'a'},
                {'tree': '7', 'count': 2, 'weight': 3, 'roots': ['a']},
            ),
            ({'count': None, 'roots': None}, {'roots': ()}),
        ):
            self.assertEqual(
                ('plant', {**defaults, **expected}), base.run(planted(**given))
            )
