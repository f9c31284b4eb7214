# SPDX-License-Identifier: Apache-2.0
"""The names of signal transports, as templates and options give them."""

from typing import Final

#: The input of a derived config that names the transport.
INPUT: Final = 'deploy_signal_transport'

AUTO: Final = 'AUTO'
TEMP_URL_POLL: Final = 'TEMP_URL_POLL'
TEMP_URL_SIGNAL: Final = 'TEMP_URL_SIGNAL'
CFN_SIGNAL: Final = 'CFN_SIGNAL'
HEAT_SIGNAL: Final = 'HEAT_SIGNAL'
ZAQAR_SIGNAL: Final = 'ZAQAR_SIGNAL'
NO_SIGNAL: Final = 'NO_SIGNAL'

#: What a template may say.
NAMES: Final = (
    AUTO,
    TEMP_URL_POLL,
    TEMP_URL_SIGNAL,
    CFN_SIGNAL,
    HEAT_SIGNAL,
    ZAQAR_SIGNAL,
    NO_SIGNAL,
)

#: What AUTO tries, in this order.
AUTOMATIC: Final = (TEMP_URL_POLL, ZAQAR_SIGNAL, CFN_SIGNAL, HEAT_SIGNAL)

#: Those by which results, and reports, are signals of the resource.
BY_SIGNAL: Final = (CFN_SIGNAL, HEAT_SIGNAL)


def canonical(name: str) -> str:
    """Return the name of a transport; a template may use a synonym."""
    return TEMP_URL_POLL if name == TEMP_URL_SIGNAL else name
