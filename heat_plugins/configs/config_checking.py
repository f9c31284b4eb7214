# SPDX-License-Identifier: Apache-2.0
"""Find mistakes in a config before a server gets it.

Each finding rests on what Heat and heat-agents 13 do with the value. An error
cannot work; a warning works, but hardly as meant; a note depends on the
server's image, where hooks may be added.

While a template is validated some values are not known yet. They are given as
``findings.UNKNOWN``, and there are no findings about them. ``None`` is a
null.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from heat_plugins import bounds
from heat_plugins.configs import actions
from heat_plugins.configs import config_problems
from heat_plugins.configs import declared_names
from heat_plugins.configs import hooks

#: What Heat calls the group of a config whose template names none.
UNGROUPED: Final = 'Heat::Ungrouped'


def check(
    *,
    group: object,
    config: object,
    inputs: object,
    outputs: object,
    known_hooks: Collection[str] = hooks.HOOKS,
) -> tuple[config_problems.ConfigProblem, ...]:
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
        *declared_names.check_inputs(inputs, tools),
        *declared_names.check_outputs(outputs, tools),
    ]
    if component:
        problems += _component(config, known_hooks)
    else:
        problems += _plain(group, config, known_hooks)
    order = list(config_problems.Severity)
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
) -> Iterator[config_problems.ConfigProblem]:
    if group is config_problems.UNKNOWN:
        return
    if not isinstance(group, str) or group in ('', UNGROUPED):
        yield config_problems.note(
            code='no-group',
            where='group',
            message='the config has no group. Only user data can do without; '
            'for a deployment, set the name of a hook on the server, such as '
            '"script".',
        )
        return
    # A plain config may also be a server's user data, where the group says
    # nothing: so what only fails in a deployment is no error here.
    yield from hooks.check_tool(
        group, 'group', config_problems.Severity.WARNING, known_hooks
    )
    yield from hooks.check_script(group, config, 'config')


def _component(
    config: object, known_hooks: Collection[str]
) -> Iterator[config_problems.ConfigProblem]:
    if not isinstance(config, Mapping):
        if config is not config_problems.UNKNOWN:
            yield config_problems.warning(
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
            yield from hooks.check_tool(
                tool,
                f'{where}.tool',
                config_problems.Severity.ERROR,
                known_hooks,
            )
            yield from hooks.check_script(
                tool, entry.get('config'), f'{where}.config'
            )
    yield from _actions(config)


def _actions(
    config: Mapping[str, Any],
) -> Iterator[config_problems.ConfigProblem]:
    owners: dict[str, int] = {}
    unsure = config.get('configs') is config_problems.UNKNOWN
    for index, entry in actions.entries(config):
        where = f'configs[{index}].actions'
        named = entry.get('actions')
        if named is config_problems.UNKNOWN:
            unsure = True
            continue
        if named is not None and not actions.sequence(named):
            yield config_problems.error(
                code='no-action',
                where=where,
                message='the list of actions is empty, so this entry would '
                'never run; name an action, or leave "actions" out for '
                'CREATE and UPDATE.',
            )
        listed = actions.DEFAULT if named is None else actions.sequence(named)
        for position, value in enumerate(listed):
            if value is config_problems.UNKNOWN:
                unsure = True
            elif value is None or isinstance(value, (str, int)):
                action = '' if value is None else str(value)
                yield from _action(action, f'{where}[{position}]')
                if action.strip():
                    yield from _owner(action, index, owners, where)
    if owners and not unsure and 'CREATE' not in owners:
        offered = bounds.listed(owners)
        yield config_problems.warning(
            code='no-create',
            where='configs',
            message=f'no entry serves CREATE (there are: {offered}), so a '
            'deployment is COMPLETE at once without running anything; '
            'add CREATE to an entry unless that is intended.',
        )


def _action(
    action: str, where: str
) -> Iterator[config_problems.ConfigProblem]:
    stripped = action.strip()
    if not stripped:
        yield config_problems.error(
            code='empty-action',
            where=where,
            message=f'the action "{action}" is blank, and no deployment ever '
            'runs it; name it or remove it.',
        )
    elif action not in actions.LIFECYCLE:
        if stripped.upper() in actions.LIFECYCLE:
            yield config_problems.warning(
                code='action-case',
                where=where,
                message=f'the action "{action}" is not "{stripped.upper()}": '
                'actions are case-sensitive, and Heat never runs this '
                'one by itself.',
            )
        elif action != stripped:
            yield config_problems.warning(
                code='padded-name',
                where=where,
                message=f'the action "{action}" begins or ends with blanks, '
                'which belong to its name; remove them.',
            )


def _owner(
    action: str, index: int, owners: dict[str, int], where: str
) -> Iterator[config_problems.ConfigProblem]:
    owner = owners.setdefault(action, index)
    if owner != index:
        yield config_problems.error(
            code='action-twice',
            where=where,
            message=f'the action "{action}" already has a config in '
            f'configs[{owner}], and the server only runs the first; let '
            f'one entry serve it.',
        )
