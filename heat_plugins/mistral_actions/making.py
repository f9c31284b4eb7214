# SPDX-License-Identifier: Apache-2.0
"""Make Mistral's actions from the operations of the core.

An action has the name, the arguments and the description of its operation.
"""

from collections import abc
import inspect
import re
from typing import Any

from mistral_lib import actions

from heat_plugins import errors
from heat_plugins.mistral_actions import results

# A field of a docstring, with its continuation lines.
_RAISES = re.compile(r'^:raises .*\n?(?:[ ]+.*\n?)*', re.MULTILINE)

#: Calls the operation of a name, with a context of Mistral's and arguments.
Call = abc.Callable[[Any, str, dict[str, Any]], Any]

#: Describes an error in terms of JSON.
Report = abc.Callable[[Exception], dict[str, Any]]


class _Action(actions.Action):  # type: ignore[misc]
    """Calls the operation of its name with its own arguments."""

    _operation: str
    _call: Call
    _report: Report

    def run(self, context: Any) -> Any:
        try:
            return self._call(context, self._operation, dict(vars(self)))
        except errors.Error as exc:
            return actions.Result(error=self._report(exc))
        except Exception as exc:
            return actions.Result(error=results.unexpected(self, context, exc))


class Maker:
    """Makes the actions of a module.

    :param module: its name: Mistral imports an action by its path.
    :param call: calls operations.
    :param report: describes the errors that they raise.
    """

    def __init__(
        self, module: str, call: Call, report: Report = errors.report
    ) -> None:
        self._shared = {
            '__module__': module,
            '_call': staticmethod(call),
            '_report': staticmethod(report),
        }

    def __call__(self, operation: abc.Callable[..., Any]) -> type[Any]:
        """Return the action that calls an operation.

        It takes no argument that only a keyword can give: Mistral gives none.
        """
        wanted = inspect.signature(operation)
        signature = wanted.replace(
            parameters=[
                parameter
                for parameter in wanted.parameters.values()
                if parameter.kind is not parameter.KEYWORD_ONLY
            ]
        )

        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
            given = signature.bind(self, *args, **kwargs)
            given.apply_defaults()
            _, *attributes = given.arguments.items()
            vars(self).update(attributes)

        # Mistral reads there what the action takes.
        __init__.__signature__ = signature  # type: ignore[attr-defined]
        name = operation.__name__
        return type(
            ''.join(part.capitalize() for part in name.split('_')),
            (_Action,),
            {
                **self._shared,
                '__doc__': _description(operation),
                '__init__': __init__,
                '_operation': name,
            },
        )


def _description(operation: object) -> str:
    """Return an operation's docstring without the errors that it raises.

    An action's result holds a code and a message in their place.
    """
    text = inspect.getdoc(operation) or ''
    return _RAISES.sub('', text).rstrip()
