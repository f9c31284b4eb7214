# SPDX-License-Identifier: Apache-2.0
"""Reports: what a server sends when it starts an action.

Only servers with the add-on send them. Where the result is an object of its
own, so is the report. Where both come as signals of the resource, a report
says that it is one, and for which config. An engine without reports takes any
signal for the result; so a server sends a report only if an input says that
this engine expects one::

    {'deploy_progress': {}, 'deploy_config_id': '<id>'}
"""

from collections import abc

REPORT, CONFIG_ID = 'deploy_progress', 'deploy_config_id'

#: The input that says that a signal may be a report.
REPORTS_INPUT = 'deploy_signal_reports'

#: The input with the URL that a report may be PUT to.
URL_INPUT = 'deploy_progress_url'

#: The input with the seconds within which the result must arrive.
TIMEOUT_INPUT = 'deploy_signal_timeout'

#: What of these a template has no use for.
INPUTS = frozenset({URL_INPUT, REPORTS_INPUT, TIMEOUT_INPUT})

_SUFFIX = '.progress'


# Where heat-agents keep what they are given: `<id>.json` from before its hook
# starts, `<id>.notify.json` from when that has ended. Of what is said of it,
# Heat cuts an event at 255 characters: what tells most comes first.
_DEPLOYED = '/var/lib/heat-config/deployed'


def explained(config_id: str | None, *, started: bool) -> str:
    """Describe an action without a result, and say where to look.

    :param config_id: of the config that the server was given.
    :param started: whether the server has reported that it started it.
    """
    start, name = 'The server reported no start', 'json'
    if started:
        start, name = 'The server reported the start', 'notify.json'
    seek = 'journalctl -u os-collect-config'
    if config_id is not None:
        seek += f' and {_DEPLOYED}/{config_id}.{name}'
    return f'{start}. See its {seek}'


def object_name(signal: str) -> str:
    """Return the name of the object of a report.

    :param signal: the name of the object of the result.
    """
    return signal + _SUFFIX


def signal_name(name: str) -> str:
    """Return the name of the result that an object belongs to."""
    return name.removesuffix(_SUFFIX)


def is_for(details: object, config_id: str) -> bool:
    """Say whether a signal is for the config that is awaited.

    Most signals name no config, and are. One that is sent repeatedly may
    arrive when its deployment has another config.
    """
    return (
        not isinstance(details, abc.Mapping)
        or details.get(CONFIG_ID, config_id) == config_id
    )


def names_config(details: object) -> bool:
    """Say whether a signal names its config."""
    return isinstance(details, abc.Mapping) and CONFIG_ID in details


def is_report(details: object) -> bool:
    """Say whether a signal is a report rather than a result."""
    return isinstance(details, abc.Mapping) and details.keys() == {
        REPORT,
        CONFIG_ID,
    }
