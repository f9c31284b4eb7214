# SPDX-License-Identifier: Apache-2.0
"""Free ports on the loopback address, kept from one start to the next."""

from collections.abc import Collection, Iterable, Mapping
import pathlib
import random
import socket

from minicloud_lib import errors

ADDRESS = '127.0.0.1'

_LOWEST = 20000
_TRIES = 2000


def choose(
    names: Iterable[str],
    remembered: Mapping[str, int],
    avoid: Collection[int],
) -> dict[str, int]:
    """A port for each name: the remembered one wherever it is free."""
    chosen: dict[str, int] = {}
    for name in names:
        port = remembered.get(name)
        if port is None or not is_free(port):
            port = _pick({*avoid, *chosen.values(), *remembered.values()})
        chosen[name] = port
    return chosen


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        # As the servers do: connections in TIME_WAIT are no obstacle.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((ADDRESS, port))
        except OSError:
            return False
    return True


def _pick(taken: Collection[int]) -> int:
    # Below the range from which the kernel takes the near ends of outgoing
    # connections, or one of those could sit on a port of ours at a restart.
    highest = max(_LOWEST + 1000, _ephemeral_start() - 1)
    for _ in range(_TRIES):
        # Not a secret.
        port = random.randint(_LOWEST, highest)  # noqa: S311 # nosec B311
        if port not in taken and is_free(port):
            return port
    raise errors.MinicloudError(
        f'no free port on {ADDRESS} from {_LOWEST} to {highest}'
    )


def _ephemeral_start() -> int:
    try:
        file = pathlib.Path('/proc/sys/net/ipv4/ip_local_port_range')
        return int(file.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return 32768
