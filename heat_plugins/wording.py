# SPDX-License-Identifier: Apache-2.0
"""Texts for people: numbers, failures of many, and services that lack.

Commands, events of stacks and ``heat-plugins-status`` name a service that a
cloud lacks in the same words. Such a text has no full stop at its end.
"""

from collections import abc
import dataclasses
import re
from typing import Final

from heat_plugins import bounds

#: Lines that the failures of many take at most.
LINES = 20

# Names that stand for all that have failed for one reason.
_NAMED = 3

# Names that are no longer may be words of a reason.
_SHORT = 2

# What differs between reasons that are otherwise the same.
_ID = re.compile(r'\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b')

_SERVICES: Final[abc.Mapping[str, str]] = {
    'object-store': 'object store',
    'workflowv2': 'Mistral',
    'cloudformation': 'heat-api-cfn',
    'messaging': 'Zaqar',
    'orchestration': 'Heat',
}

#: Features, and the parts of the cloud that each stands on.
FEATURES: Final[abc.Mapping[str, abc.Sequence[str]]] = {
    'Deployments by TEMP_URL_POLL': ('deployments', 'object_store'),
    'Deployments by CFN_SIGNAL': ('deployments', 'cfn'),
    'Deployments by HEAT_SIGNAL': ('deployments', 'heat'),
    'Deployments by ZAQAR_SIGNAL': ('deployments', 'zaqar'),
    'Runs': ('deployments', 'tables', 'results'),
    'Live output and stopping of runs': (
        'deployments',
        'tables',
        'object_store',
    ),
    'Schedules': ('schedules', 'tables', 'results'),
    'Actions by webhook': ('deployments', 'tables', 'cfn'),
    'Machines that join': ('deployments', 'object_store'),
    'Workflows': ('workflows', 'mistral_answers'),
    'Cron triggers': ('cron_triggers', 'triggers_fire'),
    'Plans': ('object_store',),
    'Plans by workflow': ('object_store', 'preinstalled'),
}

#: The types of the services by which servers can send the results of runs.
RESULTS = ('object-store', 'cloudformation')

#: The services of which each part needs one, by their types in the catalogue.
SERVICES: Final[abc.Mapping[str, abc.Sequence[str]]] = {
    'deployments': ('orchestration',),
    'workflows': ('orchestration',),
    'schedules': ('orchestration',),
    'tables': ('orchestration',),
    'cron_triggers': ('orchestration',),
    'object_store': ('object-store',),
    'cfn': ('cloudformation',),
    'results': RESULTS,
    'heat': ('orchestration',),
    'zaqar': ('messaging',),
    'mistral_answers': ('workflowv2',),
    'triggers_fire': ('workflowv2',),
    'preinstalled': ('workflowv2',),
}


def no_service(*service_types: str) -> str:
    """Return the text for services of which the catalogue has none."""
    lacking = ' and no '.join(
        f'{_SERVICES[each]} (service type "{each}")' for each in service_types
    )
    return (
        f'This region has no {lacking}; see "Clouds that lack a service" in '
        'the documentation'
    )


def no_account(url: str) -> str:
    """Return the text for a storage URL that names no account."""
    return (
        f'The storage URL {url} names no account. With "rgw keystone implicit '
        'tenants = true" Ceph RGW then refuses all TempURLs, and without it '
        'all projects share one namespace of containers: set "rgw swift '
        'account in url = true", and let the endpoint in Keystone end in '
        'AUTH_%(project_id)s'
    )


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, such as ``1 target`` or ``2 targets``."""
    return f'{number} {noun}' if number == 1 else f'{number} {noun}s'


@dataclasses.dataclass(frozen=True, kw_only=True)
class Fault:
    """A failure, among those of many.

    :ivar name: the name for people; the reason may contain it.
    :ivar also: other names that the reason may contain.
    """

    name: str
    reason: str
    also: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Alike:
    """Failures for one reason.

    :ivar reason: of the first failure; the others differ in an ID or a name.
    :ivar pattern: the same for each failure for this reason.
    """

    names: tuple[str, ...]
    reason: str
    pattern: str

    def line(self, noun: str = 'server') -> str:
        """Return the failures in one line, with at most three names."""
        names = bounds.listed(self.names, _NAMED)
        if len(self.names) > 1:
            names = f'{counted(len(self.names), noun)} ({names})'
        return f'{names}: {bounds.shortened(self.reason, bounds.PART)}'


def grouped(failures: abc.Iterable[Fault]) -> list[Alike]:
    """Group failures by their reason, the most frequent reason first.

    Reasons that differ in an ID or in the failure's name alone are one:
    ``db1 is off`` of db1 and ``db2 is off`` of db2.
    """
    groups: dict[str, list[Fault]] = {}
    for failure in failures:
        pattern = _ID.sub('<ID>', failure.reason)
        for name in (failure.name, *failure.also):
            if name in pattern and len(name) > _SHORT and not name.isdecimal():
                word = rf'(?<![\w.-]){re.escape(name)}(?![\w-])'
                pattern = re.sub(word, '<name>', pattern)
        groups.setdefault(pattern, []).append(failure)
    alike = [
        Alike(
            names=tuple(failure.name for failure in members),
            reason=members[0].reason,
            pattern=pattern,
        )
        for pattern, members in groups.items()
    ]
    return sorted(alike, key=lambda group: -len(group.names))


def lines(
    failures: abc.Iterable[Fault],
    more: str,
    *,
    noun: str = 'server',
    limit: int = LINES,
) -> list[str]:
    """Return failures, a line for each reason.

    :param more: where to find those beyond the limit.
    """
    groups = grouped(failures)
    shown = groups if len(groups) <= limit else groups[: limit - 1]
    texts = [group.line(noun) for group in shown]
    if rest := sum(len(group.names) for group in groups[len(shown) :]):
        texts.append(f'and {counted(rest, noun)} more: {more}')
    return texts
