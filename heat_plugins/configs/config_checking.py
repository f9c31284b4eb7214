# SPDX-License-Identifier: Apache-2.0
"""Find mistakes in a config that neither Heat nor the agent reports.

An error loses something for certain; a warning hardly works as meant. What
Heat refuses, or the hook on the server, is not checked here.

While Heat validates a template, some values are not known yet. `UNKNOWN`
stands for them, and there are no findings about them. ``None`` is a null.
"""

import collections
from collections.abc import Collection, Iterator, Mapping
import dataclasses
import enum
from typing import Any, Final

from heat_plugins import bounds
from heat_plugins.configs import actions
from heat_plugins.signals import body


class Unknown(enum.Enum):
    """The type of :data:`UNKNOWN`."""

    UNKNOWN = 'unknown'


#: Stands for a value that only exists once other resources do.
UNKNOWN: Final = Unknown.UNKNOWN


@dataclasses.dataclass(kw_only=True)
class Findings:
    """The mistakes in a config: each names its place, and the remedy."""

    errors: list[str] = dataclasses.field(default_factory=list)
    warnings: list[str] = dataclasses.field(default_factory=list)


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

#: What Heat calls the group of a config whose template names none.
UNGROUPED: Final = 'Heat::Ungrouped'


def check(
    *,
    group: object,
    config: object,
    inputs: object,
    outputs: object,
    known_hooks: Collection[str] = actions.HOOKS,
) -> Findings:
    """Return all findings about a config.

    :param group: the config's group, ``'component'`` for a component.
    :param config: its body: a text or a map, or ``{'configs': [...]}``.
    :param inputs: the declared inputs, a list of maps.
    :param outputs: the declared outputs, a list of maps.
    :param known_hooks: the hooks that servers are known to have.

    Values of other types are skipped: Heat checks the types.
    """
    findings = Findings()
    findings.errors += _duplicates(
        inputs,
        kind='input',
        consequence='the server uses the last one, but a deployment sets the '
        'value of the first one',
    )
    findings.errors += [
        f'inputs[{index}]: deployments add an input "{name}" themselves, '
        'which hides or breaks this one; rename it, or leave it out: the '
        'config can read it undeclared.'
        for index, name in _names(inputs)
        if name in RESERVED_INPUTS
    ]
    findings.errors += _duplicates(
        outputs,
        kind='output',
        consequence='a deployment keeps only one value of that name',
    )
    findings.warnings += [
        f'outputs[{index}]: every deployment has an output "{name}" of its '
        'own, so what the config writes to its file is lost; rename it.'
        for index, name in _names(outputs)
        if name in BUILT_IN_OUTPUTS
    ]
    if group != actions.COMPONENT:
        if group != UNGROUPED:
            _tool(group, 'group', known_hooks, findings)
        return findings
    if isinstance(config, Mapping):
        for index, entry in actions.entries(config):
            _tool(
                entry.get('tool'),
                f'configs[{index}].tool',
                known_hooks,
                findings,
            )
        _actions(config, findings)
    return findings


def _names(section: object) -> Iterator[tuple[int, str]]:
    """Yield position and name of each input or output."""
    for index, item in enumerate(actions.sequence(section)):
        if isinstance(item, Mapping):
            name = item.get('name')
            # Heat turns a name such as 5 or true into a text.
            if isinstance(name, (str, int)):
                yield index, str(name)


def _duplicates(
    section: object, *, kind: str, consequence: str
) -> Iterator[str]:
    """Yield what is declared twice in a config."""
    places: dict[str, list[str]] = collections.defaultdict(list)
    for index, name in _names(section):
        places[name].append(f'{kind}s[{index}]')
    for name, where in places.items():
        if len(where) > 1:
            yield (
                f'{where[1]}: the {kind} "{name}" is declared {len(where)} '
                f'times ({bounds.listed(where)}): {consequence}; keep one, or '
                'rename the others.'
            )


def _tool(
    tool: object, where: str, known: Collection[str], findings: Findings
) -> None:
    """Warn of a misspelt hook; a server may have others than the known."""
    if (
        isinstance(tool, str)
        and not actions.is_known_hook(tool, known)
        and actions.similar_hook(tool, known)
    ):
        findings.warnings.append(
            f'{where}: {actions.hook_warning(tool, known)}'
        )


def _actions(config: Mapping[str, Any], findings: Findings) -> None:
    """Find what is wrong with the actions of a component."""
    owners: dict[str, int] = {}
    unsure = config.get('configs') is UNKNOWN
    for index, entry in actions.entries(config):
        where = f'configs[{index}].actions'
        named = entry.get('actions')
        if named is UNKNOWN:
            unsure = True
            continue
        if named is not None and not actions.sequence(named):
            findings.errors.append(
                f'{where}: the list of actions is empty, so this entry would '
                'never run; name an action, or leave "actions" out for '
                'CREATE and UPDATE.'
            )
        listed = actions.DEFAULT if named is None else actions.sequence(named)
        for value in listed:
            if value is UNKNOWN:
                unsure = True
            elif value is None or isinstance(value, (str, int)):
                action = '' if value is None else str(value)
                _action(action, where, findings)
                if owners.setdefault(action, index) != index:
                    findings.errors.append(
                        f'{where}: the action "{action}" already has a config '
                        f'in configs[{owners[action]}], and the server only '
                        'runs the first; let one entry serve it.'
                    )
    if owners and not unsure and 'CREATE' not in owners:
        findings.warnings.append(
            'configs: no entry serves CREATE (there are: '
            f'{bounds.listed(owners)}), so a deployment is COMPLETE at once '
            'without running anything; add CREATE to an entry unless that is '
            'intended.'
        )


def _action(action: str, where: str, findings: Findings) -> None:
    """Find what is wrong with the name of an action."""
    stripped = action.strip()
    if not stripped:
        findings.errors.append(
            f'{where}: the action "{action}" is blank, and no deployment ever '
            'runs it; name it or remove it.'
        )
    elif (
        action not in actions.LIFECYCLE
        and stripped.upper() in actions.LIFECYCLE
    ):
        findings.warnings.append(
            f'{where}: the action "{action}" is not "{stripped.upper()}": '
            'actions are case-sensitive, and Heat never runs this one by '
            'itself.'
        )
