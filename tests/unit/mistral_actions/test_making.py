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
    if arguments['tree'] == 'yew':
        raise ValueError('hunter2')
    return operation, arguments


CutDown = making.ActionMaker(__name__, _call)(cut_down)
Plant = making.ActionMaker(__name__, _call)(plant)


class MakingTest(testtools.TestCase):
    def test_mistral_reads_its_arguments_and_what_it_is_for(self):
        init = CutDown.__init__
        arguments = inspect_utils.get_arg_list_as_str(init)
        assert arguments == 'tree, tools=["axe"], depth=1'
        assert inspect_utils.get_arg_list(init) == ['tree', 'tools', 'depth']
        description = inspect_utils.get_docstring(CutDown)
        assert description.splitlines() == [
            'Cut a tree down.',
            '',
            ':param tree: which.',
            ':returns: what is left.',
        ]

    def test_its_arguments_are_its_attributes_and_nothing_else_is(self):
        wanted = {'tree': 'ash', 'tools': ('axe',), 'depth': 2}
        assert vars(CutDown('ash', depth=2)) == wanted
        assert inspect_utils.get_public_fields(CutDown) == {}
        self.assertRaises(TypeError, CutDown)
        self.assertRaises(TypeError, CutDown, tree='ash', tell=print)
        # Mistral imports it by its path.
        assert sys.modules[CutDown.__module__].CutDown is CutDown

    def test_an_error_is_a_result(self):
        found = base.run(CutDown(tree='oak'))
        assert isinstance(found, actions.Result)
        assert found.error == {'code': 'refused', 'message': 'too hard'}
        # What should not happen is logged and not told.
        with self.assertLogs(making.LOG.name) as logs:
            error = base.run(CutDown(tree='yew'), 'workflow-1').error
        assert error['code'] == 'error'
        assert 'ValueError' in error['message']
        assert 'hunter2' not in str(error)
        (logged,) = logs.records
        assert 'hunter2' in logs.output[0]
        place = 'action execution action-1 of workflow execution workflow-1'
        assert f'failed: {place}' in logged.getMessage()

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
            found = base.run(Plant(**{'tree': 'ash', name: value}))
            message = f'plant: {name} must be of type {wanted}'
            assert found.error == {'code': 'invalid', 'message': message}

    def test_inputs_are_converted(self):
        defaults = {
            **{'tree': 'ash', 'count': 1, 'weight': None, 'marks': None},
            **{'roots': [], 'more': None},
        }
        typed = {'count': 2, 'weight': 3, 'marks': {'a': True}, 'more': [1]}
        for given, expected in (
            (typed, typed),
            # YAML and YAQL may have texts for numbers and lists.
            (
                {'tree': 7, 'count': '2', 'weight': '3', 'roots': 'a'},
                {'tree': '7', 'count': 2, 'weight': 3, 'roots': ['a']},
            ),
            ({'count': None, 'roots': None}, {'roots': ()}),
        ):
            action = Plant(**{'tree': 'ash', **given})
            assert base.run(action) == ('plant', {**defaults, **expected})
