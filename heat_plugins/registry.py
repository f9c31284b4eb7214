# SPDX-License-Identifier: Apache-2.0
"""The resource types that heat_plugins offers to Heat.

They are entry points in the group ``heat_plugins.resources``, named after
the type. A type that cannot be loaded is left to Heat.
"""

import collections
from collections import abc
import dataclasses
from importlib import metadata
from typing import Any

from heat import version
from oslo_config import cfg

from heat_plugins import config
from heat_plugins import foreign

LOG = foreign.logger(__name__)

ENTRY_POINT_GROUP = 'heat_plugins.resources'

# A deployment group makes deployments, and each of these classes holds its
# own copy of the transports that a template may name. Some of ours with
# some of Heat's would disagree, so all six are ours or none is.
DEPLOYMENT_TYPES = frozenset(
    {
        'OS::Heat::SoftwareDeployment',
        'OS::Heat::SoftwareDeploymentGroup',
        'OS::Heat::SoftwareDeployments',
        'OS::Heat::StructuredDeployment',
        'OS::Heat::StructuredDeploymentGroup',
        'OS::Heat::StructuredDeployments',
    }
)


#: The oldest release of Heat that can serve our types.
OLDEST = 24


class LoadError(Exception):
    """A resource type is left out; the message says why."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class LoadedTypes:
    """Resource classes for Heat, and the types that are left to it.

    :ivar classes: a class for each resource type that can be served.
    :ivar left_out: why others cannot be, by the types that are left out
        together.
    """

    classes: abc.Mapping[str, type[Any]]
    left_out: abc.Mapping[tuple[str, ...], LoadError]


def load(conf: cfg.ConfigOpts) -> abc.Mapping[str, type[Any]]:
    """Load the resource classes; warn of each type that is left out.

    :param conf: Heat's configuration, whose ``[heat_plugins]
        disabled_resource_types`` are left out.
    :returns: a class for each resource type that can be served.
    """
    offer = examine(conf)
    for names, reason in offer.left_out.items():
        LOG.warning(
            'Leaving %(types)s to Heat: %(reason)s',
            {'types': ', '.join(names), 'reason': reason},
        )
        LOG.debug('Where the loading failed', exc_info=reason)
    return offer.classes


def examine(conf: cfg.ConfigOpts) -> LoadedTypes:
    """Load the resource classes; return them, and why others are left out."""
    config.register_opts(conf)
    disabled = frozenset(conf.heat_plugins.disabled_resource_types)
    # Two distributions that offer the same class count once.
    offers: dict[str, dict[str, metadata.EntryPoint]]
    offers = collections.defaultdict(dict)
    for entry_point in metadata.entry_points(group=ENTRY_POINT_GROUP):
        offers[entry_point.name][entry_point.value] = entry_point
    alone = sorted(offers.keys() - DEPLOYMENT_TYPES)
    classes: dict[str, type[Any]] = {}
    left_out: dict[tuple[str, ...], LoadError] = {}
    for bundle in (DEPLOYMENT_TYPES, *({name} for name in alone)):
        try:
            require_heat()
            # Before anything is imported: what it does on import may be the
            # reason why the operator has disabled it.
            if excluded := bundle & disabled:
                names = ', '.join(sorted(excluded))
                raise LoadError(f'disabled_resource_types names {names}')
            classes |= {
                name: _loaded(name, list(offers[name].values()))
                for name in sorted(bundle)
            }
        except LoadError as exc:
            left_out[tuple(sorted(bundle))] = exc
    return LoadedTypes(classes=classes, left_out=left_out)


def release() -> int:
    """Return the number of this Heat's release."""
    return int(version.version_info.version_string().partition('.')[0])


def require_heat() -> None:
    """Leave all types to a Heat that is too old for them (LoadError)."""
    if release() < OLDEST:
        raise LoadError(
            f'heat-plugins needs Heat {OLDEST} (2025.1) or later, and this is '
            f'Heat {release()}'
        )


def _loaded(
    name: str, offers: abc.Collection[metadata.EntryPoint]
) -> type[Any]:
    """Return the class that one entry point offers for a resource type."""
    if not offers:
        raise LoadError(f'no installed distribution offers {name}')
    if len(offers) > 1:
        # Which one comes first depends on the order of a directory.
        values = ' and '.join(sorted(offer.value for offer in offers))
        raise LoadError(f'{name} is offered more than once, as {values}')
    (offer,) = offers
    try:
        cls: type[Any] = offer.load()
    except Exception as exc:
        raise LoadError(
            f'{offer.value} fails with {type(exc).__name__}: {exc}'
        ) from exc
    return cls
