# SPDX-License-Identifier: Apache-2.0
"""The objects of one run: what its server sends, reads and is kept of that."""

from collections import abc
import contextlib
import dataclasses
import json
from typing import Any

from heat_plugins import errors
from heat_plugins import heat_values
from heat_plugins import masking
from heat_plugins.configs import hidden_inputs
from heat_plugins.objectstore import cleaning
from heat_plugins.objectstore import keys
from heat_plugins.objectstore import stores
from heat_plugins.runs import runs
from heat_plugins.signals import body
from heat_plugins.signals import live

#: The input with the URL of a server's result.
SIGNAL_ID = 'deploy_signal_id'

#: Seconds for which a run's URL outlives its time limit: clocks differ, and
#: a result that comes late is worth knowing.
MARGIN = 3600

#: The most bytes of a result; agents send none above 950000.
BODY_LIMIT = 1_000_000

# The most bytes of outputs as an agent may send them, escaped once more.
_OUTPUTS = 16 * 1024 * 1024

# Ages of objects are told in whole seconds.
_ROUNDING = 1.0

_STATES = {body.COMPLETE: runs.State.COMPLETE, body.FAILED: runs.State.FAILED}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Expected:
    """What it takes to read a result.

    :ivar declared: the outputs that the config declares.
    :ivar mask: masks the hidden inputs.
    """

    declared: abc.Sequence[abc.Mapping[str, Any]]
    mask: masking.Mask

    @classmethod
    def by(cls, config: heat_values.DerivedConfig) -> 'Expected':
        """Return what the server of a config sends."""
        return cls(
            declared=config.outputs,
            mask=hidden_inputs.mask(config.inputs, config.options),
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Result:
    """What a server has sent, and when; seconds since the epoch.

    :ivar stopped: how it was stopped; None if it has ended by itself.
    """

    outcome: body.SignalOutcome
    at: float
    stopped: str | None = None

    @property
    def state(self) -> runs.State:
        return _STATES[self.outcome.status]

    def late(self, reason: str) -> dict[str, Any]:
        """Return what a run notes of a result that no longer counts.

        :param reason: that of the run's end.
        """
        return {
            'reason': reason + (f'; {self.stopped}' if self.stopped else ''),
            'late': runs.Late(
                at=int(self.at),
                status=self.state.value,
                reason=self.outcome.reason,
                outputs=shortened(self.outcome)[0],
            ),
        }

    def is_late(self, deadline: float) -> bool:
        """Say whether it came too late to count."""
        return self.at > deadline + _ROUNDING


class RunObjects:
    """The objects of one run, wherever they lie.

    :param outputs: the object with outputs too large for its record.
    :ivar result: the object that is its result.
    :ivar log: the prefix of what it prints.
    """

    def __init__(
        self,
        store: stores.ObjectStore,
        container: str,
        *,
        result: str,
        log: str,
        outputs: str,
    ) -> None:
        self._store = store
        self.container = container
        self.result = result
        self.report = body.report_name(result)
        self.control = live.control_name(result)
        self.log = log
        self._outputs = outputs

    def inputs(
        self, signer: keys.Signer, deadline: float, log_limit: int
    ) -> dict[str, str]:
        """Return the inputs by which a server sends, and asks.

        :param log_limit: the most bytes of what it prints.
        """
        expires = int(deadline) + MARGIN
        return {
            SIGNAL_ID: signer.url(self.result, expires),
            body.URL_INPUT: signer.url(self.report, expires),
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
            stopped=_stopped(sent.content),
        )

    def has_result(self) -> bool:
        """Say whether there is a result, without a listing."""
        return self._store.has_object(self.container, self.result)

    def discard(self, *names: str) -> None:
        """Delete what a server has sent."""
        for name in names:
            self._store.delete_object(self.container, name)

    def request_stop(self, lifetime: int | None = None) -> None:
        """Tell the server to stop the run.

        :param lifetime: seconds after which the server asks no longer.
        """
        self._store.put_object(
            self.container, self.control, b'{}', lifetime=lifetime
        )

    def keep(self, outcome: body.SignalOutcome) -> dict[str, Any]:
        """Return what a record holds of outputs; write what is longer."""
        outputs, cut = shortened(outcome)
        if cut:
            content = json.dumps(_shown(outcome)).encode()
            self._store.put_object(self.container, self._outputs, content)
        return {'outputs': outputs, 'cut': cut}

    def outputs(self, run: runs.Run) -> abc.Mapping[str, Any]:
        """Return the outputs of the run, long ones whole."""
        if not run.cut:
            return run.outputs
        try:
            content = self._store.get_object(
                self.container, self._outputs, _OUTPUTS
            )
            return body.parse(content)
        except errors.NoObject:
            return run.outputs
        except errors.BadContent as exc:
            raise errors.Error(
                f'Cannot read the outputs of run {run.id}: {exc}'
            ) from exc

    def remove(self) -> None:
        """Delete what is kept of the run in addition to its record."""
        cleaning.delete_below(self._store, self.container, self.log)
        self.discard(self.control, self._outputs)


def shortened(
    outcome: body.SignalOutcome,
) -> tuple[dict[str, Any], dict[str, int]]:
    """Return the outputs that a record holds, and how long those cut are."""
    outputs = _shown(outcome)
    cut: dict[str, int] = {}
    for name, value in outputs.items():
        shown = value if isinstance(value, str) else json.dumps(value)
        if len(shown) > runs.TAIL:
            outputs[name] = shown[-runs.TAIL :]
            cut[name] = len(shown)
    return outputs, cut


def _shown(outcome: body.SignalOutcome) -> dict[str, Any]:
    """Return outputs without the signatures in them."""
    return dict(masking.Mask().output(dict(outcome.outputs)))


def _stopped(content: bytes) -> str | None:
    """Return how a server says that it was stopped; None if it was not."""
    with contextlib.suppress(errors.BadSignal):
        details = body.parse(content)
        return live.WAYS.get(str(details.get(live.STOPPED)))
    return None
