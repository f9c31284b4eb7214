# SPDX-License-Identifier: Apache-2.0
"""What a server sends as it begins, where something there knows how to.

Where the result is an object of its own, so is the report. Where both come
as signals of the resource, a report has to say that it is one, and for which
config. An engine that does not look takes any signal for the result; so a
server sends none unless an input has told it that this engine looks::

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
    """Say what is known of an action without a result, and where to look.

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
    """Return the name of the object that is the report.

    :param signal: that of the object that is the result.
    """
    return signal + _SUFFIX


def signal_name(name: str) -> str:
    """Return what a report, or a result itself, is the report of."""
    return name.removesuffix(_SUFFIX)


def is_for(details: object, config_id: str) -> bool:
    """Say whether a signal is for the config that is waited for.

    Most do not say, and are. One that is sent again and again may come when
    its deployment has moved on to something else.
    """
    return (
        not isinstance(details, abc.Mapping)
        or details.get(CONFIG_ID, config_id) == config_id
    )


def names_config(details: object) -> bool:
    """Say whether a signal says for which config it is."""
    return isinstance(details, abc.Mapping) and CONFIG_ID in details


def is_report(details: object) -> bool:
    """Say whether a signal announces a result rather than being one."""
    return isinstance(details, abc.Mapping) and details.keys() == {
        REPORT,
        CONFIG_ID,
    }
