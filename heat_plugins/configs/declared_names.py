# SPDX-License-Identifier: Apache-2.0
"""Find mistakes in the declared inputs and outputs of a config."""

import collections
from collections.abc import Iterator, Mapping
import re
from typing import Any, Final

from heat_plugins import bounds
from heat_plugins.configs import actions
from heat_plugins.configs import config_problems
from heat_plugins.configs import hooks
from heat_plugins.signals import body

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
) -> Iterator[config_problems.ConfigProblem]:
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
            yield config_problems.error(
                code='reserved-input',
                where=where,
                message=f'deployments add an input "{name}" themselves, which '
                'hides or breaks this one; rename it, or leave it out: '
                'the config can read it undeclared.',
            )
        elif name == 'heat_outputs_path':
            yield config_problems.warning(
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
            yield config_problems.warning(
                code='null-default',
                where=where,
                message=f'the default of input "{name}" is null, which means '
                "no default; write '' for an empty value, or leave it out.",
            )


def _environment_name(
    name: str, where: str
) -> Iterator[config_problems.ConfigProblem]:
    # The script hook passes inputs as environment variables.
    if '=' in name or '\0' in name:
        yield config_problems.error(
            code='impossible-variable',
            where=where,
            message=f'the input {name!r} cannot be an environment variable, '
            'so the script hook fails before the script starts; remove the '
            '"=" or NUL.',
        )
    elif name.strip() and not _SHELL_VARIABLE.fullmatch(name):
        yield config_problems.note(
            code='not-a-shell-variable',
            where=where,
            message=f'a shell script cannot read the input "{name}" as '
            f'$name; use letters, digits and underscores.',
        )


def check_outputs(
    section: object, tools: frozenset[str]
) -> Iterator[config_problems.ConfigProblem]:
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
            yield config_problems.warning(
                code='built-in-output',
                where=where,
                message=f'every deployment has an output "{name}" of its '
                'own, so what the config writes to its file is lost; rename '
                'it.',
            )
        yield from _odd_name(name, where, 'output')
        if in_files:
            yield from _file_name(name, where)


def _file_name(
    name: str, where: str
) -> Iterator[config_problems.ConfigProblem]:
    if '\0' in name:
        yield config_problems.error(
            code='impossible-file',
            where=where,
            message=f'the output {name!r} cannot be a file name, so the hook '
            'fails after the config has run; remove the NUL.',
        )
    elif '/' in name:
        yield config_problems.warning(
            code='output-in-folder',
            where=where,
            message=f'the output "{name}" is read from a file in the folder '
            f'"$heat_outputs_path.{name.rpartition("/")[0]}", which only '
            'exists if the config creates it; remove the "/".',
        )
    elif len(name.encode(errors='replace')) > _LONGEST_OUTPUT:
        yield config_problems.warning(
            code='long-output',
            where=where,
            message=f'the output "{name}" is too long for a file name, so its '
            f'value never arrives; use at most {_LONGEST_OUTPUT} bytes.',
        )


def _duplicates(
    section: object, *, kind: str, consequence: str
) -> Iterator[config_problems.ConfigProblem]:
    places: dict[str, list[int]] = collections.defaultdict(list)
    for index, name, _ in _names(section):
        places[name].append(index)
    for name, indexes in places.items():
        if len(indexes) > 1:
            listed = bounds.listed([f'{kind}s[{i}]' for i in indexes])
            yield config_problems.error(
                code=f'duplicate-{kind}',
                where=f'{kind}s[{indexes[1]}]',
                message=f'the {kind} "{name}" is declared {len(indexes)} '
                f'times ({listed}): {consequence}; keep one, or rename the '
                f'others.',
            )


def _odd_name(
    name: str, where: str, kind: str
) -> Iterator[config_problems.ConfigProblem]:
    if not name.strip():
        yield config_problems.warning(
            code='blank-name',
            where=where,
            message=f'the name of this {kind} is blank; name it.',
        )
    elif name != name.strip():
        yield config_problems.warning(
            code='padded-name',
            where=where,
            message=f'the name "{name}" of this {kind} begins or ends with '
            'blanks, which belong to the name; remove them.',
        )
