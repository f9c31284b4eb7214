# SPDX-License-Identifier: Apache-2.0
"""The meaning of a signal: a result, or a report that a server has started.

Only servers with the add-on send reports. Where the result is an object of its
own, so is the report. Where both come as signals of the resource, a report
says that it is one, and for which config. An engine without reports takes any
signal for the result; so a server sends a report only if an input says that
this engine expects one::

    {'deploy_progress': {}, 'deploy_config_id': '<id>'}
"""

from collections import abc
import dataclasses
import json
import re
from typing import Any

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins import masking

STDOUT = 'deploy_stdout'
STDERR = 'deploy_stderr'
STATUS_CODE = 'deploy_status_code'
#: What a server always sends, whatever outputs its config declares.
STANDARD_OUTPUTS = (STDOUT, STDERR, STATUS_CODE)

COMPLETE = 'COMPLETE'
FAILED = 'FAILED'

# The most causes of a failure in a reason, and characters of an output's name:
# a template's outputs have no limits, and an event of Heat has 255 characters.
_TOLD = 3
_NAME = 40

# A hook that crashes may send all that it was given, the URL of its own signal
# too.
_SIGNATURES = masking.Mask()

# The most characters of the last line of stderr in a reason.
_LAST_LINE = 120

# The bytes at the end of stderr that may hold the traceback of a hook.
_TAIL = 16 * 1024

# How the traceback of one of heat-agents' hooks begins. A hook that crashes
# has not written what its script did: 55-heat-config then sends what the hook
# itself has written to stderr, with all inputs.
_CRASHED_HOOK = re.compile(
    r'^Traceback \(most recent call last\):\n'
    r'  File "[^"\n]*/hooks/([^"/\n]+)", line \d+, in <module>\n'
    r' +sys\.exit\(main\(',
    re.MULTILINE,
)

_WHOLE_NUMBER = re.compile(r'([+-]?[0-9]{1,8})(?:\.0+)?')


@dataclasses.dataclass(frozen=True, kw_only=True)
class SignalOutcome:
    """How a deployment ended.

    :ivar status: ``COMPLETE`` or ``FAILED``.
    :ivar reason: short, for people. Of the outputs, which may hold secrets,
        it quotes the last line of what was written to stderr, masked.
    :ivar outputs: all outputs of this action, by name; none of an earlier
        action is added to them.
    """

    status: str
    reason: str
    outputs: abc.Mapping[str, Any]


def parse(body: bytes) -> dict[str, Any]:
    """Read the body of a signal.

    An empty body is a signal without outputs, like a signal without data
    through Heat's API.

    :raises errors.BadSignal: it is not a JSON map in UTF-8.
    """
    if not body.strip():
        return {}
    try:
        text = body.decode('utf-8')
    except UnicodeDecodeError as exc:
        raise errors.BadSignal('it is not UTF-8') from exc
    try:
        details = bounds.read_json(text)
    except bounds.TooDeep as exc:
        raise errors.BadSignal(str(exc)) from exc
    except ValueError as exc:
        raise errors.BadSignal('it is not JSON') from exc
    return as_map(details)


def as_map(details: object) -> dict[str, Any]:
    """Return a signal's details as a map.

    :raises errors.BadSignal: they are something else.
    """
    if details is None:
        return {}
    if not isinstance(details, dict):
        kinds = {str: 'string', list: 'list', bool: 'boolean'}
        kind = kinds.get(type(details), 'number')
        raise errors.BadSignal(f'it is a {kind}, but must be a map')
    try:
        bounds.check_depth(details)
        text = json.dumps(details, ensure_ascii=False, allow_nan=False)
        text.encode('utf-8')
    except bounds.TooDeep as exc:
        raise errors.BadSignal(str(exc)) from exc
    except UnicodeEncodeError as exc:
        raise errors.BadSignal('it holds an incomplete character') from exc
    except (TypeError, ValueError) as exc:
        # Such as 1e999; Python reads them, and no other reader of outputs.
        raise errors.BadSignal('it holds an infinite number or NaN') from exc
    return details


def outcome(
    details: abc.Mapping[str, Any],
    declared: abc.Iterable[abc.Mapping[str, Any]],
    mask: masking.Mask = _SIGNATURES,
    *,
    secrets: abc.Iterable[str] = (),
) -> SignalOutcome:
    """Say how a deployment ended, by the rules of Heat's deployments.

    A status code other than 0 is a failure, and so is an output declared as
    ``error_output`` that has a value. An output that is empty has none: the
    script hook sends every output whose file was made. Neither has 0, be it a
    number or a text, as it is no error for a status code.

    :param details: the signal.
    :param declared: the outputs of the config, maps with ``name`` and,
        perhaps, ``error_output``.
    :param mask: masks secrets in the outputs that are not declared, and
        signatures.
    :param secrets: the texts to mask in the reason. They are worked out only
        if the deployment has failed.
    """
    outputs: dict[str, Any] = {
        name: mask.output(details.get(name)) for name in STANDARD_OUTPUTS
    }
    causes = []
    if code := details.get(STATUS_CODE):
        match = _WHOLE_NUMBER.fullmatch(str(code).strip())
        if match is None:
            causes.append(f'{STATUS_CODE} is not a number')
        elif status := int(match[1]):
            causes.append(_failed(status, outputs[STDERR], secrets))
    for output in declared:
        name = output['name']
        if name not in details:
            continue
        # The config's author has asked for this value: it is not masked.
        value = outputs[name] = details[name]
        if output.get('error_output') and (
            value.strip() not in ('', '0') if isinstance(value, str) else value
        ):
            shown = foreign.stored(name, _NAME)
            causes.append(f'error output "{shown}" has a value')
    if causes:
        if len(causes) > _TOLD:
            causes[_TOLD:] = [f'and {len(causes) - _TOLD} more']
        return SignalOutcome(
            status=FAILED, reason='; '.join(causes), outputs=outputs
        )
    return SignalOutcome(
        status=COMPLETE, reason='Outputs received', outputs=outputs
    )


def read(
    content: bytes,
    declared: abc.Iterable[abc.Mapping[str, Any]],
    mask: masking.Mask = _SIGNATURES,
    *,
    secrets: abc.Iterable[str] = (),
) -> SignalOutcome:
    """Return the outcome of a signal; an unusable one is a failure."""
    try:
        return outcome(parse(content), declared, mask, secrets=secrets)
    except errors.BadSignal as exc:
        return failure(str(exc))


def failure(reason: str) -> SignalOutcome:
    """Return the outcome of an unreadable signal."""
    return SignalOutcome(
        status=FAILED,
        reason=f'The signal cannot be used: {reason}',
        outputs=dict.fromkeys(STANDARD_OUTPUTS),
    )


def _failed(status: int, stderr: object, secrets: abc.Iterable[str]) -> str:
    """Return why a server reports an exit status other than 0."""
    reason = f'the exit status ({STATUS_CODE}) is {status}'
    text = stderr.rstrip() if isinstance(stderr, str) else ''
    if not text:
        return reason
    if crash := _CRASHED_HOOK.search(text[-_TAIL:]):
        reason = (
            f'the hook "{foreign.stored(crash[1], _NAME)}" itself crashed, '
            'not the config'
        )
    # Masked before it is cut, which might leave the half of a secret.
    last = masking.Mask(secrets).text(text.splitlines()[-1])
    return f'{reason}: {foreign.stored(last.strip(), _LAST_LINE)}'


REPORT, CONFIG_ID = 'deploy_progress', 'deploy_config_id'

#: The input that says that a signal may be a report.
REPORTS_INPUT = 'deploy_signal_reports'

#: The input with the URL that a report may be PUT to.
PROGRESS_INPUT = 'deploy_progress_url'

#: The input with the seconds within which the result must arrive.
TIMEOUT_INPUT = 'deploy_signal_timeout'

#: What of these a template has no use for.
REPORT_INPUTS = frozenset({PROGRESS_INPUT, REPORTS_INPUT, TIMEOUT_INPUT})

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


def report_name(signal: str) -> str:
    """Return the name of the object of a report.

    :param signal: the name of the object of the result.
    """
    return signal + _SUFFIX


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
