# SPDX-License-Identifier: Apache-2.0
"""What of a plan may leave it without its secrets."""

from collections import abc
import dataclasses
from typing import Any, BinaryIO

from heat_plugins import errors
from heat_plugins.content import tarballs
from heat_plugins.plans.content import plan as plans
from heat_plugins.plans.content import plan_environment as environments
from heat_plugins.plans.content import references
from heat_plugins.plans.parameters import secrecy
from heat_plugins.plans.parameters import secrets as secrets_module

# Number of files that are in memory at a time.
_CHUNK = 64


def write(
    plan: plans.Plan,
    fetch: references.Fetch,
    file: BinaryIO,
    *,
    secrets: bool,
) -> tuple[str, ...]:
    """Write a plan as a tarball (gzip).

    :param secrets: see `plan_service.Plans.export`.
    """
    environment = plan.environment
    left_out: tuple[str, ...] = ()
    if not secrets:
        environment, left_out = _without_secrets(environment, fetch)
    text = environment.to_text().encode()
    paths = sorted(plan.entries)
    with tarballs.writer(file) as add:
        for start in range(0, len(paths), _CHUNK):
            found = fetch(paths[start : start + _CHUNK])
            for path, content in found.items():
                add(path, text if path == environments.PATH else content)
    return left_out


def _without_secrets(
    plan: environments.PlanEnvironment, fetch: references.Fetch
) -> tuple[environments.PlanEnvironment, tuple[str, ...]]:
    """Return a plan's environment without secret values.

    Of generated passwords the names stay, so that others are generated. Left
    out is what is set for a hidden parameter, or for one that no template
    has. Where the templates cannot be read, all that is set is left out. Files
    stay as they are.

    :return: also the names of the parameters that are left out.
    """
    try:
        hidden, known = secrecy.hidden_in(references.resolve(plan, fetch))
    except errors.Error:
        hidden, known = frozenset(), frozenset()
    left_out: set[str] = set()

    def shown(section: abc.Mapping[str, Any]) -> dict[str, Any]:
        left_out.update(
            str(name)
            for name in section
            if name in hidden or name not in known
        )
        return {
            name: value
            for name, value in section.items()
            if name not in left_out
        }

    def entry(found: environments.Entry) -> environments.Entry:
        if found.data is None:
            return found
        data = {
            name: shown(section)
            if name in ('parameter_defaults', 'parameters')
            and isinstance(section, dict)
            else section
            for name, section in found.data.items()
        }
        return environments.Entry(data=data)

    found = dataclasses.replace(
        secrets_module.withhold(plan),
        parameter_defaults=shown(plan.parameter_defaults),
        derived_parameters=shown(plan.derived_parameters),
        environments=tuple(map(entry, plan.environments)),
    )
    return found, tuple(sorted(left_out))
