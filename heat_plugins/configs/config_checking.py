# SPDX-License-Identifier: Apache-2.0
"""Find mistakes in a config before a server gets it.

Each finding rests on what Heat and heat-agents 13 do with the value. An error
cannot work; a warning works, but hardly as meant; a note depends on the
server's image, where hooks may be added.

While Heat validates a template, some values are not known yet. `UNKNOWN`
stands for them, and there are no findings about them. ``None`` is a null.
"""

import collections
from collections.abc import Collection, Iterator, Mapping
import dataclasses
import enum
import functools
import re
from typing import Any, Final

from heat_plugins import bounds
from heat_plugins.configs import actions
from heat_plugins.configs import hooks
from heat_plugins.signals import body


class Unknown(enum.Enum):
    """The type of :data:`UNKNOWN`."""

    UNKNOWN = 'unknown'


#: Stands for a value that only exists once other resources do.
UNKNOWN: Final = Unknown.UNKNOWN


class Severity(enum.Enum):
    """How much a :class:`ConfigProblem` matters."""

    ERROR = 'error'
    WARNING = 'warning'
    NOTE = 'note'


@dataclasses.dataclass(frozen=True, kw_only=True)
class ConfigProblem:
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


error = functools.partial(ConfigProblem, severity=Severity.ERROR)
warning = functools.partial(ConfigProblem, severity=Severity.WARNING)
note = functools.partial(ConfigProblem, severity=Severity.NOTE)


#: The inputs that Heat and this project add to what a server is handed.
#: They come last there, and the last input of a name wins. Where they are
#: not added, for another transport needs others, the agent takes a declared
#: one for the order to signal that way, and fails for want of the rest.
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
BUILT_IN_OUTPUTS: Final = frozenset(body.STANDARD_OUTPUTS)

# These hooks read the output NAME from the file <folder>/<config id>.NAME.
_OUTPUTS_IN_FILES: Final = frozenset({'ansible', 'chef', 'puppet', 'script'})
_LONGEST_OUTPUT: Final = 255 - len('00000000-0000-0000-0000-000000000000.')
_SHELL_VARIABLE: Final = re.compile('[A-Za-z_][A-Za-z0-9_]*')


def _names(section: object) -> Iterator[tuple[int, str, Mapping[str, Any]]]:
    """Yield position, name and declaration of each input or output."""
    for index, item in enumerate(actions.sequence(section)):
        if not isinstance(item, Mapping):
            continue
        name = item.get('name')
        # Heat turns a name such as 5 or true into a text.
        if isinstance(name, (str, int)):
            yield index, str(name), item


def check_inputs(
    section: object, tools: frozenset[str]
) -> Iterator[ConfigProblem]:
    """Yield the mistakes in inputs for some hooks."""
    yield from _duplicates(
        section,
        kind='input',
        consequence='the server uses the last one, but a deployment sets the '
        'value of the first one',
    )
    for index, name, item in _names(section):
        where = f'inputs[{index}]'
        if name in RESERVED_INPUTS:
            yield error(
                code='reserved-input',
                where=where,
                message=f'deployments add an input "{name}" themselves, which '
                'hides or breaks this one; rename it, or leave it out: '
                'the config can read it undeclared.',
            )
        elif name == 'heat_outputs_path':
            yield warning(
                code='hidden-input',
                where=where,
                message='the input "heat_outputs_path" never reaches the '
                'config, because hooks set it to the path for outputs; '
                'rename it.',
            )
        yield from _odd_name(name, where, 'input')
        if hooks.SCRIPT in tools:
            yield from _environment_name(name, where)
        if 'default' in item and item['default'] is None:
            yield warning(
                code='null-default',
                where=where,
                message=f'the default of input "{name}" is null, which means '
                "no default; write '' for an empty value, or leave it out.",
            )


def _environment_name(name: str, where: str) -> Iterator[ConfigProblem]:
    # The script hook passes inputs as environment variables.
    if '=' in name or '\0' in name:
        yield error(
            code='impossible-variable',
            where=where,
            message=f'the input {name!r} cannot be an environment variable, '
            'so the script hook fails before the script starts; remove the '
            '"=" or NUL.',
        )
    elif name.strip() and not _SHELL_VARIABLE.fullmatch(name):
        yield note(
            code='not-a-shell-variable',
            where=where,
            message=f'a shell script cannot read the input "{name}" as '
            f'$name; use letters, digits and underscores.',
        )


def check_outputs(
    section: object, tools: frozenset[str]
) -> Iterator[ConfigProblem]:
    """Yield the mistakes in outputs of some hooks."""
    yield from _duplicates(
        section,
        kind='output',
        consequence='a deployment keeps only one value of that name',
    )
    in_files = bool(tools & _OUTPUTS_IN_FILES)
    for index, name, _ in _names(section):
        where = f'outputs[{index}]'
        if name in BUILT_IN_OUTPUTS:
            yield warning(
                code='built-in-output',
                where=where,
                message=f'every deployment has an output "{name}" of its '
                'own, so what the config writes to its file is lost; rename '
                'it.',
            )
        yield from _odd_name(name, where, 'output')
        if in_files:
            yield from _file_name(name, where)


def _file_name(name: str, where: str) -> Iterator[ConfigProblem]:
    if '\0' in name:
        yield error(
            code='impossible-file',
            where=where,
            message=f'the output {name!r} cannot be a file name, so the hook '
            'fails after the config has run; remove the NUL.',
        )
    elif '/' in name:
        yield warning(
            code='output-in-folder',
            where=where,
            message=f'the output "{name}" is read from a file in the folder '
            f'"$heat_outputs_path.{name.rpartition("/")[0]}", which only '
            'exists if the config creates it; remove the "/".',
        )
    elif len(name.encode(errors='replace')) > _LONGEST_OUTPUT:
        yield warning(
            code='long-output',
            where=where,
            message=f'the output "{name}" is too long for a file name, so its '
            f'value never arrives; use at most {_LONGEST_OUTPUT} bytes.',
        )


def _duplicates(
    section: object, *, kind: str, consequence: str
) -> Iterator[ConfigProblem]:
    places: dict[str, list[int]] = collections.defaultdict(list)
    for index, name, _ in _names(section):
        places[name].append(index)
    for name, indexes in places.items():
        if len(indexes) > 1:
            listed = bounds.listed([f'{kind}s[{i}]' for i in indexes])
            yield error(
                code=f'duplicate-{kind}',
                where=f'{kind}s[{indexes[1]}]',
                message=f'the {kind} "{name}" is declared {len(indexes)} '
                f'times ({listed}): {consequence}; keep one, or rename the '
                f'others.',
            )


def _odd_name(name: str, where: str, kind: str) -> Iterator[ConfigProblem]:
    if not name.strip():
        yield warning(
            code='blank-name',
            where=where,
            message=f'the name of this {kind} is blank; name it.',
        )
    elif name != name.strip():
        yield warning(
            code='padded-name',
            where=where,
            message=f'the name "{name}" of this {kind} begins or ends with '
            'blanks, which belong to the name; remove them.',
        )


#: What Heat calls the group of a config whose template names none.
UNGROUPED: Final = 'Heat::Ungrouped'


def check(
    *,
    group: object,
    config: object,
    inputs: object,
    outputs: object,
    known_hooks: Collection[str] = hooks.HOOKS,
) -> tuple[ConfigProblem, ...]:
    """Return all findings about a config.

    :param group: the config's group, ``'component'`` for a component.
    :param config: its body: a text or a map, or ``{'configs': [...]}``.
    :param inputs: the declared inputs, a list of maps.
    :param outputs: the declared outputs, a list of maps.
    :param known_hooks: the hooks that servers are known to have.
    :returns: errors first; empty for a config without mistakes.

    Values of other types are skipped: Heat checks the types.
    """
    component = group == actions.COMPONENT
    tools = _tools(group, config)
    problems = [
        *check_inputs(inputs, tools),
        *check_outputs(outputs, tools),
    ]
    if component:
        problems += _component(config, known_hooks)
    else:
        problems += _plain(group, config, known_hooks)
    order = list(Severity)
    return tuple(sorted(problems, key=lambda p: order.index(p.severity)))


def _tools(group: object, config: object) -> frozenset[str]:
    """Return the hooks that get this config's inputs."""
    if group != actions.COMPONENT:
        return frozenset(
            {hooks.name_of(group)} if isinstance(group, str) else ()
        )
    named = (entry.get('tool') for _, entry in actions.entries(config))
    return frozenset(
        hooks.name_of(tool) for tool in named if isinstance(tool, str)
    )


def _plain(
    group: object, config: object, known_hooks: Collection[str]
) -> Iterator[ConfigProblem]:
    if group is UNKNOWN:
        return
    if not isinstance(group, str) or group in ('', UNGROUPED):
        yield note(
            code='no-group',
            where='group',
            message='the config has no group. Only user data can do without; '
            'for a deployment, set the name of a hook on the server, such as '
            '"script".',
        )
        return
    # A plain config may also be a server's user data, where the group says
    # nothing: so what only fails in a deployment is no error here.
    yield from check_tool(group, 'group', Severity.WARNING, known_hooks)
    yield from check_script(group, config, 'config')


def _component(
    config: object, known_hooks: Collection[str]
) -> Iterator[ConfigProblem]:
    if not isinstance(config, Mapping):
        if config is not UNKNOWN:
            yield warning(
                code='not-a-component',
                where='group',
                message='a config of group "component" must be a map with the '
                'list "configs", else no deployment of it can work; set '
                'the group to a hook, such as "script", or use '
                'OS::Heat::SoftwareComponent.',
            )
        return
    for index, entry in actions.entries(config):
        where = f'configs[{index}]'
        tool = entry.get('tool')
        if isinstance(tool, str):
            yield from check_tool(
                tool,
                f'{where}.tool',
                Severity.ERROR,
                known_hooks,
            )
            yield from check_script(
                tool, entry.get('config'), f'{where}.config'
            )
    yield from _actions(config)


def _actions(
    config: Mapping[str, Any],
) -> Iterator[ConfigProblem]:
    owners: dict[str, int] = {}
    unsure = config.get('configs') is UNKNOWN
    for index, entry in actions.entries(config):
        where = f'configs[{index}].actions'
        named = entry.get('actions')
        if named is UNKNOWN:
            unsure = True
            continue
        if named is not None and not actions.sequence(named):
            yield error(
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
        offered = bounds.listed(owners)
        yield warning(
            code='no-create',
            where='configs',
            message=f'no entry serves CREATE (there are: {offered}), so a '
            'deployment is COMPLETE at once without running anything; '
            'add CREATE to an entry unless that is intended.',
        )


def _action(action: str, where: str) -> Iterator[ConfigProblem]:
    stripped = action.strip()
    if not stripped:
        yield error(
            code='empty-action',
            where=where,
            message=f'the action "{action}" is blank, and no deployment ever '
            'runs it; name it or remove it.',
        )
    elif action not in actions.LIFECYCLE:
        if stripped.upper() in actions.LIFECYCLE:
            yield warning(
                code='action-case',
                where=where,
                message=f'the action "{action}" is not "{stripped.upper()}": '
                'actions are case-sensitive, and Heat never runs this '
                'one by itself.',
            )
        elif action != stripped:
            yield warning(
                code='padded-name',
                where=where,
                message=f'the action "{action}" begins or ends with blanks, '
                'which belong to its name; remove them.',
            )


def _owner(
    action: str, index: int, owners: dict[str, int], where: str
) -> Iterator[ConfigProblem]:
    owner = owners.setdefault(action, index)
    if owner != index:
        yield error(
            code='action-twice',
            where=where,
            message=f'the action "{action}" already has a config in '
            f'configs[{owner}], and the server only runs the first; let '
            f'one entry serve it.',
        )


def check_tool(
    tool: str,
    where: str,
    nameless: Severity,
    known: Collection[str] = hooks.HOOKS,
) -> Iterator[ConfigProblem]:
    """Yield the mistakes in the name of a hook.

    :param nameless: the severity of a name that no hook can have.
    :param known: the hooks that servers are known to have.
    """
    hook = hooks.name_of(tool)
    if not hook:
        yield ConfigProblem(
            severity=nameless,
            code='impossible-tool',
            where=where,
            message=f'"{tool}" cannot name a hook: the agent fails on it and '
            'sends no signal; use one such as "script".',
        )
    elif hook not in known:
        is_near = hooks.near(tool, known) is not None
        yield ConfigProblem(
            severity=Severity.WARNING if is_near else Severity.NOTE,
            code='unknown-tool',
            where=where,
            message=hooks.warning(tool, known),
        )


def check_script(
    tool: str, config: object, where: str
) -> Iterator[ConfigProblem]:
    """Yield what keeps a script from starting."""
    if hooks.name_of(tool) != hooks.SCRIPT or not isinstance(
        config, (str, type(None))
    ):
        return
    first = (config or '').split('\n', 1)[0]
    if not first.startswith('#!'):
        yield warning(
            code='no-interpreter',
            where=where,
            message='the script must begin with "#!", as in "#!/bin/sh", else '
            'heat-agents fail to start it ("Exec format error").',
        )
    elif first.endswith('\r'):
        yield warning(
            code='carriage-returns',
            where=where,
            message='the script has Windows line ends, so the server cannot '
            'find its interpreter, whose name then ends in a carriage '
            'return; use line feeds only.',
        )
