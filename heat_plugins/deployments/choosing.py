# SPDX-License-Identifier: Apache-2.0
"""Which signal transport an action uses: the one named, or what AUTO finds."""

from collections import abc

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins.deployments import deliveries
from heat_plugins.deployments import failures
from heat_plugins.signals import transport_names

LOG = foreign.logger(__name__)


def choose(
    wanted: str,
    prepare: abc.Callable[[str], deliveries.Signalling],
    label: str,
) -> deliveries.Signalling:
    """Prepare the transport of one action.

    :param wanted: as the template names it.
    :param prepare: makes what a transport needs, by its name; raises
        `failures.Unusable`.
    :param label: of the deployment, for the log.
    :raises failures.NoAnswer: it cannot be used, or under AUTO none.
    :raises errors.Unavailable: the same, but one of them may be usable later.
    """
    name = transport_names.canonical(wanted)
    tried: list[str] = []
    may_pass = False
    for candidate in (
        transport_names.AUTOMATIC if name == transport_names.AUTO else (name,)
    ):
        try:
            chosen = prepare(candidate)
        except failures.Unusable as exc:
            may_pass |= exc.may_pass
            tried.append(f'{candidate}: {exc}')
            continue
        if tried:
            LOG.info(
                '%(deployment)s uses %(chosen)s; these transports are '
                'unavailable: %(tried)s',
                {
                    'deployment': label,
                    'chosen': chosen.transport,
                    'tried': '. '.join(tried),
                },
            )
        return chosen
    kind = errors.Unavailable if may_pass else failures.NoAnswer
    raise kind(f'The signal transport cannot be used. {". ".join(tried)}')
