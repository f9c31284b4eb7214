# SPDX-License-Identifier: Apache-2.0
"""Where operations lie in their project's container.

::

    operations/heads/<operation>                    what a list shows
    operations/orders/<operation>                   what was ordered
    operations/leads/<operation>/<epoch>            who advances it
    operations/states/<operation>/<epoch>/control   what holds for all
    operations/states/<operation>/<epoch>/<shard>   attempts, some together
    operations/arrivals/<operation>/<member>.<attempt>   what a server sends
    operations/outputs/<operation>/<member>.<attempt>    long outputs, whole
    operations/logs/<operation>/<member>.<attempt>/<slot>   see `live`
    operations/arrivals/<operation>/requests/<time>   pause, resume, cancel …
    operations/arrivals/<operation>/met     there if others run on its members
    operations/live/<action>/<operation>    while it may start runs

All results and requests of an operation lie below one prefix: however many
stacks it is over, one listing tells what has come.
"""

import secrets
from urllib import parse

from heat_plugins.runs.records import record_names

#: The stem of the container's name; see `objectstore.stores`.
CONTAINER = 'heat-plugins-operations'

HEADS = 'operations/heads/'

#: Attempts that one object holds.
SHARD = 50

_FOLDERS = (
    'orders',
    'leads',
    'states',
    'outputs',
    'logs',
    'arrivals',
    'heads',
)


def head(operation_id: str) -> str:
    return HEADS + operation_id


def order(operation_id: str) -> str:
    return f'operations/orders/{operation_id}'


def leads(operation_id: str) -> str:
    return f'operations/leads/{operation_id}/'


def states(operation_id: str, epoch: int) -> str:
    return f'operations/states/{operation_id}/{epoch:06d}/'


def control(operation_id: str, epoch: int) -> str:
    return f'{states(operation_id, epoch)}control'


def shard(operation_id: str, epoch: int, number: int) -> str:
    return f'{states(operation_id, epoch)}{number:05d}'


def arrivals(operation_id: str) -> str:
    return f'operations/arrivals/{operation_id}/'


def requests(operation_id: str) -> str:
    return f'{arrivals(operation_id)}requests/'


def met(operation_id: str) -> str:
    """Return the object that lists other operations; see `exclusions`."""
    return f'{arrivals(operation_id)}met'


def live(action: str) -> str:
    """Return the prefix of the operations that may start runs of an action."""
    return f'operations/live/{parse.quote(action, safe="")}/'


def new_request(operation_id: str, now: float) -> str:
    """Return a name for a request; those of later requests sort after it."""
    return f'{requests(operation_id)}{now:017.6f}-{secrets.token_hex(4)}'


def requested_at(name: str) -> float:
    """Return the time in the name of a request; 0 if that has none."""
    try:
        return float(name.rpartition('/')[2].partition('-')[0])
    except ValueError:
        return 0.0


def result(operation_id: str, member: int, attempt: int) -> str:
    """Return the object that the result of an attempt is."""
    return f'{arrivals(operation_id)}{member:05d}.{attempt}'


def outputs(operation_id: str, member: int, attempt: int) -> str:
    """Return the object with the outputs of an attempt that are long."""
    return f'operations/outputs/{operation_id}/{member:05d}.{attempt}'


def logs(operation_id: str) -> str:
    return f'operations/logs/{operation_id}/'


def log_folder(operation_id: str, member: int, attempt: int) -> str:
    """Return the prefix of what an attempt prints until it ends."""
    return f'{logs(operation_id)}{member:05d}.{attempt}/'


def attempt_of(run_id: str) -> tuple[str, int, int]:
    """Return the operation, the member and the attempt that a run is.

    :raises ValueError: it is no run of an operation.
    """
    operation, member, attempt = run_id.split('.')
    return operation, int(member), int(attempt)


def prefixes(operation_id: str) -> list[str]:
    """Return below what an operation lies; what a list shows goes last."""
    return [f'operations/{folder}/{operation_id}' for folder in _FOLDERS]


def is_operation_id(text: str) -> bool:
    return record_names.is_run_id(text)


def shards(members: int) -> range:
    """Return the numbers of the shards of an operation."""
    return range(-(-members // SHARD))
