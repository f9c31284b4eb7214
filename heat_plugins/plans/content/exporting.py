# SPDX-License-Identifier: Apache-2.0
"""Exports of plans, with or without their secrets."""

from collections import abc
import contextlib
import dataclasses
from typing import Any, BinaryIO

from heat_plugins import errors
from heat_plugins.content import tarballs
from heat_plugins.plans.content import environments
from heat_plugins.plans.content import plans
from heat_plugins.plans.content import references
from heat_plugins.plans.parameters import secrecy

# Number of files that are in memory at a time.
_CHUNK = 64


@dataclasses.dataclass(frozen=True, kw_only=True)
class LeftOut:
    """The secrets that a tarball lacks, and the files with other secrets.

    :ivar values: names of set parameters.
    :ivar passwords: the number of generated passwords.
    :ivar files: of the plan that set secrets; the tarball has them unchanged.
    """

    values: tuple[str, ...] = ()
    passwords: int = 0
    files: tuple[str, ...] = ()


def write(
    plan: plans.Plan,
    fetch: references.Fetch,
    file: BinaryIO,
    *,
    with_secrets: bool,
) -> LeftOut:
    """Write a plan as a tarball (gzip).

    :param with_secrets: see `plan_service.Plans.export`.
    """
    environment, left_out = plan.environment, LeftOut()
    if not with_secrets:
        environment, left_out = _without_secrets(environment, fetch)
    text = environment.to_text().encode()
    paths = sorted(plan.entries)
    with tarballs.writer(file) as add:
        for start in range(0, len(paths), _CHUNK):
            contents = fetch(paths[start : start + _CHUNK])
            for path, content in contents.items():
                add(path, text if path == environments.PATH else content)
    return left_out


def _without_secrets(
    plan: environments.PlanEnvironment, fetch: references.Fetch
) -> tuple[environments.PlanEnvironment, LeftOut]:
    """Return a plan's environment without secret values.

    The names of generated passwords stay, so that new ones are generated. The
    values of secret parameters, and of those that no template has, are left
    out; all values are where the templates are unreadable. Files stay.
    """
    names = secrecy.SecretNames(secret=frozenset(), known=frozenset())
    files: tuple[str, ...] = ()
    with contextlib.suppress(errors.Error):
        content = references.resolve(plan, fetch)
        names = secrecy.SecretNames.of(content, plan)
        files = tuple(
            dict.fromkeys(
                path
                for path, values in secrecy.set_in(content)
                if not path.startswith(f'{environments.PATH}#')
                and any(names.texts(values))
            )
        )
    left_out: set[str] = set()

    def shown(section: abc.Mapping[str, Any]) -> dict[str, Any]:
        hidden = {name for name in section if not names.may_be_seen(name)}
        left_out.update(map(str, hidden))
        return {k: v for k, v in section.items() if k not in hidden}

    def entry(given: environments.Entry) -> environments.Entry:
        if given.data is None:
            return given
        data = {
            name: shown(section)
            if name in secrecy.SECTIONS and isinstance(section, dict)
            else section
            for name, section in given.data.items()
        }
        return environments.Entry(data=data)

    exported = dataclasses.replace(
        plan,
        passwords=dict.fromkeys(plan.passwords),
        parameter_defaults=shown(plan.parameter_defaults),
        derived_parameters=shown(plan.derived_parameters),
        workflow_parameters=shown(plan.workflow_parameters),
        environments=tuple(map(entry, plan.environments)),
    )
    return exported, LeftOut(
        values=tuple(sorted(left_out)),
        passwords=sum(
            password is not None for password in plan.passwords.values()
        ),
        files=files,
    )
