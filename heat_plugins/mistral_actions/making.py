# SPDX-License-Identifier: Apache-2.0
"""Actions of Mistral, made from the operations of the core.

An action has the name, the arguments and the description of its operation, and
refuses an input of another type. A null means the default.
"""

from collections import abc
import contextlib
import inspect
import re
import types
import typing
from typing import Any

from mistral_lib import actions

from heat_plugins import errors
from heat_plugins import foreign

LOG = foreign.logger(__name__)

# Seconds until a retry where Heat or the object store is out of order.
_OUT_OF_ORDER = 60


def timed_error(exc: Exception) -> dict[str, Any]:
    """Return an error as a map of a code, a message and ``next_look``.

    ``next_look`` are the seconds until a retry; 0 for a lasting error.
    """
    report = errors.report(exc)
    passing = report['code'] == errors.Unavailable.code
    return {**report, 'next_look': _OUT_OF_ORDER if passing else 0}


# A field of a docstring, with its continuation lines.
_RAISES = re.compile(r'^:raises .*\n?(?:[ ]+.*\n?)*', re.MULTILINE)

#: Calls the operation of a name, with a context of Mistral's and arguments.
Call = abc.Callable[[Any, str, dict[str, Any]], Any]

#: Describes an error in terms of JSON.
Report = abc.Callable[[Exception], dict[str, Any]]


class _Action(actions.Action):  # type: ignore[misc]
    """An action, which calls the operation of its name."""

    _operation: str
    _signature: inspect.Signature
    _call: Call
    _report: Report

    def run(self, context: Any) -> Any:
        try:
            return self._call(context, self._operation, self._arguments())
        except errors.Error as exc:
            return actions.Result(error=self._report(exc))
        except Exception as exc:
            # Mistral shows results to all users of the project.
            LOG.error(
                '%(action)s failed: action execution %(id)s of workflow '
                'execution %(workflow)s',
                {
                    'action': f'{self.__module__}.{type(self).__name__}',
                    'id': context.execution.action_execution_id,
                    'workflow': context.execution.workflow_execution_id,
                },
                exc_info=exc,
            )
            told = f"{type(exc).__name__}; the executor's log says where"
            return actions.Result(error=timed_error(errors.Error(told)))

    def _arguments(self) -> dict[str, Any]:
        """Return the arguments of the operation.

        :raises errors.Invalid: one of them is of another type.
        """
        arguments = {}
        for name, value in vars(self).items():
            wanted = self._signature.parameters[name]
            if value is None and wanted.default is not wanted.empty:
                arguments[name] = wanted.default
                continue
            try:
                arguments[name] = _read(value, wanted.annotation)
            except TypeError:
                # The value may be a secret, and is not quoted.
                kind = inspect.formatannotation(wanted.annotation)
                raise errors.Invalid(
                    f'{self._operation}: {name} must be of type '
                    + kind.replace('collections.abc.', '')
                ) from None
        return arguments


def _read(value: Any, kind: Any) -> Any:
    """Convert a value of JSON into the type of an argument.

    YAML and YAQL write a number as a text, or a text as a number, and a list
    of one text may be that text.

    :raises TypeError: it has another type.
    """
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if kind in (Any, inspect.Parameter.empty, type(value)):
        return value
    if origin is types.UnionType:
        for part in parts:
            with contextlib.suppress(TypeError):
                return _read(value, part)
    elif origin is abc.Mapping and isinstance(value, dict):
        return {key: _read(entry, parts[1]) for key, entry in value.items()}
    elif origin in (abc.Collection, abc.Sequence):
        entries = [value] if isinstance(value, str) else value
        if isinstance(entries, list | tuple):
            return [_read(entry, parts[0]) for entry in entries]
    elif kind is str and type(value) in (int, float):
        return str(value)
    elif kind in (int, float) and str(value).isdecimal():
        return int(value)
    raise TypeError


class ActionMaker:
    """A maker of the actions of a module.

    :param module: its name: Mistral imports an action by its path.
    :param call: calls operations.
    :param report: describes their errors.
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

        # Mistral reads the arguments of the action there.
        __init__.__signature__ = signature  # type: ignore[attr-defined]
        name = operation.__name__
        # A result has a code and a message in place of errors.
        description = _RAISES.sub('', inspect.getdoc(operation) or '')
        return type(
            ''.join(part.capitalize() for part in name.split('_')),
            (_Action,),
            {
                **self._shared,
                '__doc__': description.rstrip(),
                '__init__': __init__,
                '_operation': name,
                '_signature': signature,
            },
        )
