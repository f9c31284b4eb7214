# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a config, told before any server sees it.

Each finding rests on what Heat and heat-agents 13 do with the value. An
error is what cannot work; a warning, what works but hardly as meant; a
note, what depends on the server's image, where hooks may be added.

While a template is validated some values are not there yet. They are given
as :data:`UNKNOWN`, and nothing is said about them. ``None`` is a null.
"""

import collections
from collections.abc import Iterator, Mapping
import dataclasses
import difflib
import enum
import re
from typing import Any, Final

from heat_plugins.configs import actions


class Unknown(enum.Enum):
    """The type of :data:`UNKNOWN`."""

    UNKNOWN = 'unknown'


#: Stands for a value that only exists once other resources do.
UNKNOWN: Final = Unknown.UNKNOWN

#: The inputs that Heat and this project add to what a server is handed.
#: They come last there, and the last input of a name wins.
RESERVED_INPUTS: Final = frozenset(
    {
        'deploy_action',
        'deploy_auth_url',
        'deploy_password',
        'deploy_project_id',
        'deploy_queue_id',
        'deploy_region_name',
        'deploy_resource_name',
        'deploy_server_id',
        'deploy_signal_id',
        'deploy_signal_transport',
        'deploy_signal_verb',
        'deploy_stack_id',
        'deploy_user_id',
        'deploy_username',
    }
)

#: The outputs that every deployment has, declared or not.
BUILT_IN_OUTPUTS: Final = frozenset(
    {'deploy_stdout', 'deploy_stderr', 'deploy_status_code'}
)

#: The hooks that heat-agents ships.
HOOKS: Final = frozenset(
    {
        'ansible',
        'apply-config',
        'cfn-init',
        'chef',
        'docker-cmd',
        'docker-compose',
        'hiera',
        'json-file',
        'kubelet',
        'puppet',
        'salt',
        'script',
    }
)

#: What Heat calls the group of a config whose template names none.
UNGROUPED: Final = 'Heat::Ungrouped'

_SCRIPT: Final = 'script'
# These hooks read the output NAME from the file <folder>/<config id>.NAME.
_OUTPUTS_IN_FILES: Final = frozenset({'ansible', 'chef', 'puppet', 'script'})
_LONGEST_OUTPUT: Final = 255 - len('00000000-0000-0000-0000-000000000000.')
_SHELL_VARIABLE: Final = re.compile('[A-Za-z_][A-Za-z0-9_]*')


class Severity(enum.Enum):
    """How much a :class:`Problem` matters."""

    ERROR = 'error'
    WARNING = 'warning'
    NOTE = 'note'


@dataclasses.dataclass(frozen=True, kw_only=True)
class Problem:
    """One finding about a config.

    :ivar severity: an error must be put right before the config is used.
    :ivar code: a short name that stays the same between releases.
    :ivar where: the place in the config, such as ``inputs[1]``.
    :ivar message: the finding, with the value and the remedy.
    """

    severity: Severity
    code: str
    where: str
    message: str

    def __str__(self) -> str:
        return f'{self.where}: {self.message}'


def check(
    *, group: object, config: object, inputs: object, outputs: object
) -> tuple[Problem, ...]:
    """Return everything that can be said against a config.

    :param group: the config's group, ``'component'`` for a component.
    :param config: its body: a text or a map, or ``{'configs': [...]}``.
    :param inputs: the declared inputs, a list of maps.
    :param outputs: the declared outputs, a list of maps.
    :returns: errors first; empty for a config with nothing wrong.

    Values of other types are passed over: their types are Heat's to check.
    """
    component = group == actions.COMPONENT
    tools = _tools(group, config)
    found = [*_inputs(inputs, tools), *_outputs(outputs, tools)]
    if component:
        found += _component(config)
    else:
        found += _plain(group, config)
    order = list(Severity)
    return tuple(sorted(found, key=lambda p: order.index(p.severity)))


def _tools(group: object, config: object) -> frozenset[str]:
    """Return the hooks that would be handed this config's inputs."""
    if group != actions.COMPONENT:
        return frozenset({_hook(group)} if isinstance(group, str) else ())
    named = (entry.get('tool') for _, entry in actions.entries(config))
    return frozenset(_hook(tool) for tool in named if isinstance(tool, str))


def _hook(tool: str) -> str:
    """Return the file that the agent runs for ``tool``, as it works it out."""
    return ''.join(c for c in tool if c in '-_' or c.isalnum())


def _names(section: object) -> Iterator[tuple[int, str, Mapping[str, Any]]]:
    """Yield position, name and declaration of each input or output."""
    for index, item in enumerate(actions.sequence(section)):
        if not isinstance(item, Mapping):
            continue
        name = item.get('name')
        # Heat turns a name such as 5 or true into a text.
        if isinstance(name, (str, int)):
            yield index, str(name), item


def _inputs(section: object, tools: frozenset[str]) -> Iterator[Problem]:
    yield from _duplicates(
        section,
        kind='input',
        consequence='the server keeps the last, while the value that a '
        'deployment gives goes to the first',
    )
    for index, name, item in _names(section):
        where = f'inputs[{index}]'
        if name in RESERVED_INPUTS:
            yield Problem(
                severity=Severity.ERROR,
                code='reserved-input',
                where=where,
                message=f'the input "{name}" is one that every deployment '
                f'may add itself, which then hides or breaks this one; '
                f'leave it out, the config can read it undeclared, or '
                f'rename it.',
            )
        elif name == 'heat_outputs_path':
            yield Problem(
                severity=Severity.WARNING,
                code='hidden-input',
                where=where,
                message='the input "heat_outputs_path" never reaches the '
                'config: the hooks set it to where outputs belong; rename '
                'it.',
            )
        yield from _odd_name(name, where, 'input')
        if _SCRIPT in tools:
            yield from _environment_name(name, where)
        if 'default' in item and item['default'] is None:
            yield Problem(
                severity=Severity.WARNING,
                code='null-default',
                where=where,
                message=f'the default of input "{name}" is null, which is '
                f"no default at all, not an empty value; write '' or "
                f'leave it out.',
            )


def _environment_name(name: str, where: str) -> Iterator[Problem]:
    # The script hook passes inputs as environment variables.
    if '=' in name or '\0' in name:
        yield Problem(
            severity=Severity.ERROR,
            code='impossible-variable',
            where=where,
            message=f'the input {name!r} cannot be an environment variable, '
            f'so the script hook fails before the script starts; take out '
            f'the "=" or NUL.',
        )
    elif name.strip() and not _SHELL_VARIABLE.fullmatch(name):
        yield Problem(
            severity=Severity.NOTE,
            code='not-a-shell-variable',
            where=where,
            message=f'a shell script cannot read the input "{name}" as '
            f'$name; use letters, digits and underscores.',
        )


def _outputs(section: object, tools: frozenset[str]) -> Iterator[Problem]:
    yield from _duplicates(
        section,
        kind='output',
        consequence='a deployment can keep one value of that name',
    )
    in_files = bool(tools & _OUTPUTS_IN_FILES)
    for index, name, _ in _names(section):
        where = f'outputs[{index}]'
        if name in BUILT_IN_OUTPUTS:
            yield Problem(
                severity=Severity.WARNING,
                code='built-in-output',
                where=where,
                message=f'every deployment has the output "{name}" already; '
                f'what the config writes to its file is dropped. Rename it '
                f'to return a value of your own.',
            )
        yield from _odd_name(name, where, 'output')
        if in_files:
            yield from _file_name(name, where)


def _file_name(name: str, where: str) -> Iterator[Problem]:
    if '\0' in name:
        yield Problem(
            severity=Severity.ERROR,
            code='impossible-file',
            where=where,
            message=f'the output {name!r} cannot be a file name, so the '
            f'hook fails after the config has run; take out the NUL.',
        )
    elif '/' in name:
        yield Problem(
            severity=Severity.WARNING,
            code='output-in-folder',
            where=where,
            message=f'the output "{name}" is read from a file in the folder '
            f'"$heat_outputs_path.{name.rpartition("/")[0]}", which only '
            f'exists if the config makes it; take out the "/".',
        )
    elif len(name.encode(errors='replace')) > _LONGEST_OUTPUT:
        yield Problem(
            severity=Severity.WARNING,
            code='long-output',
            where=where,
            message=f'the output "{name}" is too long for the name of the '
            f'file that it is read from, so it never arrives; use at most '
            f'{_LONGEST_OUTPUT} bytes.',
        )


def _duplicates(
    section: object, *, kind: str, consequence: str
) -> Iterator[Problem]:
    places: dict[str, list[int]] = collections.defaultdict(list)
    for index, name, _ in _names(section):
        places[name].append(index)
    for name, indexes in places.items():
        if len(indexes) > 1:
            listed = ', '.join(f'{kind}s[{i}]' for i in indexes)
            yield Problem(
                severity=Severity.ERROR,
                code=f'duplicate-{kind}',
                where=f'{kind}s[{indexes[1]}]',
                message=f'the {kind} "{name}" is declared {len(indexes)} '
                f'times ({listed}): {consequence}; keep one, or rename the '
                f'others.',
            )


def _odd_name(name: str, where: str, kind: str) -> Iterator[Problem]:
    if not name.strip():
        yield Problem(
            severity=Severity.WARNING,
            code='blank-name',
            where=where,
            message=f'the name "{name}" of this {kind} is blank; name it.',
        )
    elif name != name.strip():
        yield Problem(
            severity=Severity.WARNING,
            code='padded-name',
            where=where,
            message=f'the name "{name}" of this {kind} begins or ends with '
            f'blanks, which belong to the name; take them out.',
        )


def _plain(group: object, config: object) -> Iterator[Problem]:
    if group is UNKNOWN:
        return
    if not isinstance(group, str) or group in ('', UNGROUPED):
        yield Problem(
            severity=Severity.NOTE,
            code='no-group',
            where='group',
            message='no group is set, which suits user data; a deployment '
            'needs one that a hook on the server is named after, such as '
            '"script".',
        )
        return
    # A plain config may also be a server's user data, where the group says
    # nothing: so what only fails in a deployment is no error here.
    yield from _tool(group, 'group', Severity.WARNING)
    yield from _script(group, config, 'config')


def _component(config: object) -> Iterator[Problem]:
    if not isinstance(config, Mapping):
        if config is not UNKNOWN:
            yield Problem(
                severity=Severity.WARNING,
                code='not-a-component',
                where='group',
                message='the group "component" needs a map with the list '
                '"configs", so no deployment of this config can work; name '
                'the group after a hook, such as "script", or use '
                'OS::Heat::SoftwareComponent.',
            )
        return
    for index, entry in actions.entries(config):
        where = f'configs[{index}]'
        tool = entry.get('tool')
        if isinstance(tool, str):
            yield from _tool(tool, f'{where}.tool', Severity.ERROR)
            yield from _script(tool, entry.get('config'), f'{where}.config')
    yield from _actions(config)


def _tool(tool: str, where: str, nameless: Severity) -> Iterator[Problem]:
    hook = _hook(tool)
    if not hook:
        yield Problem(
            severity=nameless,
            code='impossible-tool',
            where=where,
            message=f'"{tool}" names no hook: the agent fails on it and '
            f'never signals; use one such as "script".',
        )
    elif hook not in HOOKS:
        near = difflib.get_close_matches(hook.lower(), sorted(HOOKS), 1, 0.8)
        hint = f' Is "{near[0]}" meant?' if near else ''
        yield Problem(
            severity=Severity.WARNING if near else Severity.NOTE,
            code='unknown-tool',
            where=where,
            message=f'"{tool}" is no hook of heat-agents: unless the '
            f'server has one of that name, nothing runs and nothing is '
            f'signalled.{hint}',
        )


def _script(tool: str, config: object, where: str) -> Iterator[Problem]:
    if _hook(tool) != _SCRIPT or not isinstance(config, (str, type(None))):
        return
    first = (config or '').split('\n', 1)[0]
    if not first.startswith('#!'):
        yield Problem(
            severity=Severity.WARNING,
            code='no-interpreter',
            where=where,
            message='heat-agents runs a script as a program of its own, '
            'which fails ("Exec format error") unless its very first '
            'characters are "#!", as in "#!/bin/sh".',
        )
    elif first.endswith('\r'):
        yield Problem(
            severity=Severity.WARNING,
            code='carriage-returns',
            where=where,
            message='the script has Windows line ends, so that the server '
            'looks for an interpreter whose name ends in a carriage '
            'return; use plain line feeds.',
        )


def _actions(config: Mapping[str, Any]) -> Iterator[Problem]:
    owners: dict[str, int] = {}
    unsure = config.get('configs') is UNKNOWN
    for index, entry in actions.entries(config):
        where = f'configs[{index}].actions'
        named = entry.get('actions')
        if named is UNKNOWN:
            unsure = True
            continue
        if named is not None and not actions.sequence(named):
            yield Problem(
                severity=Severity.ERROR,
                code='no-action',
                where=where,
                message='the list of actions is empty, so this entry would '
                'never run; name an action, or leave "actions" out for '
                'CREATE and UPDATE.',
            )
        listed = actions.DEFAULT if named is None else actions.sequence(named)
        for position, value in enumerate(listed):
            if value is UNKNOWN:
                unsure = True
            elif value is None or isinstance(value, (str, int)):
                action = '' if value is None else str(value)
                yield from _action(action, f'{where}[{position}]')
                if action.strip():
                    yield from _owner(action, index, owners, where)
    if owners and not unsure and 'CREATE' not in owners:
        offered = ', '.join(owners)
        yield Problem(
            severity=Severity.WARNING,
            code='no-create',
            where='configs',
            message=f'no entry serves CREATE (there are: {offered}), so a '
            f'deployment does nothing when it is created and is complete at '
            f'once; add CREATE to an entry unless that is meant.',
        )


def _action(action: str, where: str) -> Iterator[Problem]:
    stripped = action.strip()
    if not stripped:
        yield Problem(
            severity=Severity.ERROR,
            code='empty-action',
            where=where,
            message=f'the action "{action}" is empty, and no deployment '
            f'ever runs it; name it or take it out.',
        )
    elif action not in actions.LIFECYCLE:
        if stripped.upper() in actions.LIFECYCLE:
            yield Problem(
                severity=Severity.WARNING,
                code='action-case',
                where=where,
                message=f'the action "{action}" is not '
                f'"{stripped.upper()}": actions are compared letter by '
                f'letter, and Heat never runs this one by itself.',
            )
        elif action != stripped:
            yield Problem(
                severity=Severity.WARNING,
                code='padded-name',
                where=where,
                message=f'the action "{action}" begins or ends with blanks, '
                f'which belong to its name; take them out.',
            )


def _owner(
    action: str, index: int, owners: dict[str, int], where: str
) -> Iterator[Problem]:
    owner = owners.setdefault(action, index)
    if owner != index:
        yield Problem(
            severity=Severity.ERROR,
            code='action-twice',
            where=where,
            message=f'the action "{action}" already has a config in '
            f'configs[{owner}], and the server only runs the first; let '
            f'one entry serve it.',
        )
