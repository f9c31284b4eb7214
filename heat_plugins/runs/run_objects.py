# SPDX-License-Identifier: Apache-2.0
"""The objects of one run: what its server sends, reads and is kept of that."""

from collections import abc
import contextlib
import dataclasses
import json
from typing import Any

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins import heat_values
from heat_plugins import masking
from heat_plugins.configs import hidden_inputs
from heat_plugins.objectstore import keys
from heat_plugins.objectstore import stores
from heat_plugins.runs import run_records
from heat_plugins.signals import body
from heat_plugins.signals import live
from heat_plugins.signals import signal_names

#: The input with the URL of a server's result.
SIGNAL_ID = 'deploy_signal_id'

#: Seconds for which a run's URL outlives its time limit: clocks differ, and
#: a result that comes late is worth knowing.
MARGIN = 3600

#: The most bytes of a result; agents send none above 950000.
BODY_LIMIT = 1_000_000

#: The most bytes of a report.
REPORT_LIMIT = 16 * 1024

# The most characters of its message.
_MESSAGE = 200

_SIGNATURES = masking.Mask()

# The most bytes of outputs as an agent may send them, escaped once more.
_OUTPUTS = 16 * 1024 * 1024


@dataclasses.dataclass(frozen=True, kw_only=True)
class Expected:
    """The declaration of a result: outputs, and secrets to mask.

    :ivar declared: the outputs that the config declares.
    :ivar mask: masks the hidden inputs.
    """

    declared: abc.Sequence[abc.Mapping[str, Any]]
    mask: masking.Mask

    @classmethod
    def by(cls, config: heat_values.DerivedConfig) -> 'Expected':
        """Return the expected answer of the server that has a config."""
        return cls(
            declared=config.outputs,
            mask=hidden_inputs.mask(config.inputs, config.options),
        )


#: Of an attempt whose config is gone: all that may be a secret is masked.
NOTHING_KNOWN = Expected(declared=(), mask=masking.Mask(everything=True))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Result:
    """The result of a server, with its time in seconds since the epoch.

    :ivar stopped: how it was stopped; None if it has ended by itself.
    """

    outcome: body.SignalOutcome
    at: float
    stopped: str | None = None

    @property
    def state(self) -> run_records.State:
        """The state of a target that has sent this result."""
        return run_records.State(self.outcome.status.lower())

    def late(self, reason: str) -> dict[str, Any]:
        """Return the changes of an attempt by a result that no longer counts.

        :param reason: that of the run's end.
        """
        return {
            'reason': reason + (f'; {self.stopped}' if self.stopped else ''),
            'late': run_records.Late(
                at=int(self.at),
                status=self.state.value,
                reason=self.outcome.reason,
                outputs=shortened(self.outcome)[0],
            ),
        }


class RunObjects:
    """The objects of an attempt on a target, in its root stack's container.

    :ivar result: the object that is its result.
    :ivar log: the prefix of what it prints.
    """

    def __init__(
        self,
        store: stores.ObjectStore,
        stack_id: str,
        run_id: str,
        number: int,
        attempt: int,
    ) -> None:
        name = f'{run_id}/{number:05d}.{attempt}'
        self._store = store
        self.container = signal_names.container(stack_id)
        self.result = result_name(run_id, number, attempt)
        self.report = body.report_name(self.result)
        self.control = live.control_name(self.result)
        self.log = f'runs/logs/{name}/'
        # Those too large for its record.
        self._outputs = f'runs/outputs/{name}'

    def inputs(
        self, signer: keys.Signer, deadline: float, log_limit: int
    ) -> dict[str, str]:
        """Return the inputs by which a server sends, and asks.

        :param log_limit: the most bytes of what it prints.
        """
        expires = int(deadline) + MARGIN
        return {
            heat_values.TRANSPORT_INPUT: heat_values.TEMP_URL_POLL,
            'deploy_signal_verb': 'PUT',
            SIGNAL_ID: signer.url(self.result, expires),
            body.PROGRESS_INPUT: signer.url(self.report, expires),
            live.CONTROL_INPUT: signer.url(
                self.control, expires, method='GET'
            ),
            live.LOG_INPUT: signer.url(self.log, expires, is_prefix=True),
            live.LIMIT_INPUT: str(log_limit),
        }

    def fetch(
        self,
        expected: abc.Callable[[], Expected],
        inputs: abc.Mapping[str, Any],
        now: float,
    ) -> Result:
        """Return the result.

        :param expected: asked only if there is one.
        :param inputs: those of the run, which may be secrets.
        :raises errors.NoObject: there is none, or it was taken.
        """
        try:
            sent = self._store.fetch(self.container, self.result, BODY_LIMIT)
        except errors.TooLarge as exc:
            return Result(outcome=body.failure(str(exc)), at=now)
        its = expected()
        return Result(
            outcome=body.read(
                sent.content,
                its.declared,
                its.mask,
                secrets=masking.texts(inputs),
            ),
            at=now - sent.age,
            stopped=stopped(sent.content),
        )

    def request_stop(self, lifetime: int | None = None) -> None:
        """Tell the server to stop the run.

        :param lifetime: seconds after which the server asks no longer.
        """
        self._store.put_object(
            self.container, self.control, b'{}', lifetime=lifetime
        )

    def keep(self, outcome: body.SignalOutcome) -> None:
        """Write outputs that are too large for a record."""
        if shortened(outcome)[1]:
            content = json.dumps(shown(outcome)).encode()
            self._store.put_object(self.container, self._outputs, content)

    def outputs(
        self, known: abc.Mapping[str, Any], cut: abc.Mapping[str, int]
    ) -> abc.Mapping[str, Any]:
        """Return outputs, long ones whole if they are kept.

        :param known: as a record has them.
        :param cut: how long those are of which it has the end.
        """
        if not cut:
            return known
        try:
            content = self._store.get_object(
                self.container, self._outputs, _OUTPUTS
            )
        except errors.NoObject:
            return known
        return body.parse(content)


def folders(run_id: str) -> list[str]:
    """Return the prefixes of all objects of a run in one container."""
    return [
        f'{signal_names.SIGNALS}runs/{run_id}/',
        f'runs/logs/{run_id}/',
        f'runs/outputs/{run_id}/',
    ]


def parse_report(
    content: bytes, mask: masking.Mask = _SIGNATURES
) -> tuple[float | None, str | None]:
    """Return percent and message of a report; None for an unusable one.

    :param mask: masks secrets in its message.

    :raises errors.BadContent: it is no JSON map.
    """
    details = body.parse(content)
    percent, message = details.get('progress'), details.get('message')
    if isinstance(percent, bool) or not isinstance(percent, (int, float)):
        percent = None
    if isinstance(message, str):
        text = ' '.join(mask.text(message).split())
        message = foreign.line(text, _MESSAGE)
    return (
        # Before it becomes a float, which not every whole number can.
        None if percent is None else float(min(100, max(0, percent))),
        message if isinstance(message, str) and message else None,
    )


def result_name(run_id: str, number: int, attempt: int) -> str:
    """Return the object that the result of an attempt on a target is."""
    return f'{signal_names.SIGNALS}runs/{run_id}/{number:05d}.{attempt}'


def shortened(
    outcome: body.SignalOutcome,
) -> tuple[dict[str, Any], dict[str, int]]:
    """Return the outputs that a record holds, and how long those cut are."""
    outputs = shown(outcome)
    cut: dict[str, int] = {}
    for name, value in outputs.items():
        text = value if isinstance(value, str) else json.dumps(value)
        if len(text) > run_records.TAIL:
            outputs[name] = text[-run_records.TAIL :]
            cut[name] = len(text)
    return outputs, cut


def shown(outcome: body.SignalOutcome) -> dict[str, Any]:
    """Return outputs without the signatures in them."""
    return dict(masking.Mask().output(dict(outcome.outputs)))


def stopped(content: bytes) -> str | None:
    """Return how a server says that it was stopped; None if it was not."""
    with contextlib.suppress(errors.BadSignal):
        return live.WAYS.get(str(body.parse(content).get(live.STOPPED)))
    return None
