# SPDX-License-Identifier: Apache-2.0
"""What a failed call of a service's API means to a plan."""

from heat_plugins.clients import rest
from heat_plugins.plans import errors

_WRONG = {
    rest.Kind.DENIED: errors.Denied,
    rest.Kind.UNAVAILABLE: errors.Unavailable,
}


def message(exc: rest.Failure) -> str:
    """Return what has failed, with the service's own words, on one line."""
    said = ' '.join(exc.said.split())
    return f'{exc}: {said}' if said else str(exc)


def error(exc: rest.Failure) -> errors.ServiceError:
    """Return it as an error of plans."""
    return _WRONG.get(exc.kind, errors.ServiceError)(message(exc), exc.status)
