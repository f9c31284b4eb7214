# SPDX-License-Identifier: Apache-2.0
"""The difference between a plan and the stack that was deployed from it.

Both sides are Heat's: the content of the stack, and Heat's validation of the
plan. So changes to the stack without the plan show, too.
"""

from collections import abc
import dataclasses
import difflib
import json
from typing import Any, Final

from heat_plugins import errors
from heat_plugins import masking
from heat_plugins.content import texts
from heat_plugins.plans import plan_service
from heat_plugins.plans.content import environments
from heat_plugins.plans.content import plans
from heat_plugins.plans.content import references
from heat_plugins.plans.parameters import heat_validation
from heat_plugins.plans.parameters import secrecy

#: Lines that one comparison compares one by one.
LINES: Final = 20_000


@dataclasses.dataclass(frozen=True, kw_only=True)
class Difference:
    """A change that a deployment would make.

    :ivar kind: template, file, parameter or registry.
    :ivar change: added, removed or changed.
    :ivar name: of a file, a parameter or a resource type.
    :ivar detail: a unified diff of texts; of values, the former and the new
        one in JSON, masked where they are hidden.
    """

    kind: str
    change: str
    name: str
    detail: str = ''


def differences(service: plan_service.Plans, name: str) -> list[Difference]:
    """Return the changes that a deployment would make in a plan's stack.

    :raises errors.NotFound: it has no stack.
    :raises errors.ServiceError: Heat refuses the plan.
    """
    plan = service.load(name)
    stack = service.stacks.find(name)
    if stack is None:
        raise errors.NotFound(f'Plan {name} is not deployed')
    wanted = service.resolve(plan)
    with secrecy.guarding(wanted, plan.environment):
        answer = service.stacks.validate(wanted)
    template, environment, files = service.stacks.content(stack)
    hiding = _Hiding(plan, answer, wanted, environment)
    compared = Texts()
    changes: list[Difference] = []
    own = texts.mapping(wanted.template, 'the root template')
    if own != template:
        # Heat stores parsed templates, without the layout of the text.
        sides = (
            texts.dump(json.loads(json.dumps(side, sort_keys=True)))
            for side in (template, own)
        )
        changes.append(
            Difference(
                kind='template',
                change='changed',
                name='',
                detail=compared.unified(*sides),
            )
        )
    new = answer.get('Environment') or {}
    return [
        dataclasses.replace(
            difference, detail=hiding.mask.value(difference.detail)
        )
        for difference in (
            *changes,
            *_files(files, wanted, compared),
            *_parameters(environment, new, hiding),
            *_registry(environment, new),
        )
    ]


class _Hiding:
    """The secrets of a comparison.

    :ivar mask: masks the secrets of both sides wherever they appear.
    """

    def __init__(
        self,
        plan: plans.Plan,
        answer: abc.Mapping[str, Any],
        wanted: references.Resolved,
        actual: abc.Mapping[str, Any],
    ) -> None:
        environment = plan.environment
        names = heat_validation.secret_names(answer, wanted, environment)
        secrets = heat_validation.secrets(answer, environment, names)
        former = names.texts(heat_validation.values(actual))
        self._names = names
        self.mask = masking.Mask({*secrets, *former})

    def shown(self, name: str, value: Any) -> str:
        if not self._names.may_be_seen(name):
            return masking.MASK
        shown = self.mask.value(value)
        return json.dumps(shown, sort_keys=True, ensure_ascii=False)


def _files(
    actual: abc.Mapping[str, str],
    wanted: references.Resolved,
    compared: 'Texts',
) -> abc.Iterator[Difference]:
    """Yield the files that a deployment would change."""
    for name, before, after in _changed(actual, wanted.files):
        # The values of environments are compared one by one.
        if name.startswith(f'{environments.PATH}#'):
            continue
        change, detail = _change(before, after), ''
        if change == 'changed' and name not in wanted.environments:
            detail = compared.unified(str(before), str(after))
        yield Difference(kind='file', change=change, name=name, detail=detail)


def _parameters(
    actual: abc.Mapping[str, Any],
    wanted: abc.Mapping[str, Any],
    hiding: _Hiding,
) -> abc.Iterator[Difference]:
    """Yield the parameters that a deployment would change."""
    sides = heat_validation.values(actual), heat_validation.values(wanted)
    # Heat can keep hidden values encrypted; those cannot be compared.
    encrypted = set(actual.get('encrypted_param_names') or ())
    for name, before, after in _changed(*sides):
        # Heat may have masked the value itself.
        if name in encrypted or (name in sides[1] and before == masking.MASK):
            continue
        yield Difference(
            kind='parameter',
            change=_change(before, after),
            name=name,
            detail=' -> '.join(
                hiding.shown(name, side[name])
                for side in sides
                if name in side
            ),
        )


def _registry(
    actual: abc.Mapping[str, Any], wanted: abc.Mapping[str, Any]
) -> abc.Iterator[Difference]:
    """Yield the types of resources that a deployment would change."""
    before = actual.get('resource_registry') or {}
    after = wanted.get('resource_registry') or {}
    for name, *sides in _changed(before, after, lambda side: side or None):
        yield Difference(
            kind='registry',
            change=_change(*sides),
            name=name,
            detail=' -> '.join(
                json.dumps(side) for side in sides if side is not None
            ),
        )


def _changed(
    before: abc.Mapping[str, Any],
    after: abc.Mapping[str, Any],
    read: abc.Callable[[Any], Any] = lambda value: value,
) -> abc.Iterator[tuple[str, Any, Any]]:
    """Yield names with different values; None stands for a missing value."""
    for name in sorted(before.keys() | after.keys()):
        sides = read(before.get(name)), read(after.get(name))
        if sides[0] != sides[1]:
            yield name, *sides


def _change(before: Any, after: Any) -> str:
    """Say whether a value was added, removed or changed."""
    if before is None:
        return 'added'
    return 'removed' if after is None else 'changed'


class Texts:
    """Comparisons of texts, with a limit for the lines of all.

    Python's difflib takes the square of their number.
    """

    def __init__(self) -> None:
        self._left = LINES

    def unified(self, before: str, after: str) -> str:
        """Return a unified diff, or a reason without one."""
        sides = before.splitlines(), after.splitlines()
        self._left -= sum(map(len, sides))
        if self._left < 0:
            return (
                f'{len(sides[0])} and {len(sides[1])} lines; only the first '
                f'{LINES} lines are compared line by line'
            )
        lines = difflib.unified_diff(*sides, 'stack', 'plan', lineterm='')
        return '\n'.join(lines)
