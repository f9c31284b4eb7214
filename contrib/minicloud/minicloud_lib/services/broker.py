# SPDX-License-Identifier: Apache-2.0
"""Messaging inside one process that behaves as messaging between two.

oslo.messaging's driver for ``fake://`` hands the very objects over, changes
and all, raises the callee's exceptions as they are, and looks for messages
twenty times a second. Here what is sent goes through JSON, as it would over
a broker, and listeners are woken.
"""

import json
import threading
import time
from typing import Any

from oslo_messaging._drivers import base
from oslo_messaging._drivers import common
from oslo_messaging._drivers import impl_fake
from oslo_serialization import jsonutils

from minicloud_lib.services import counters

_arrived = threading.Condition()


def install() -> None:
    """Call before the service makes its transport."""
    impl_fake.FakeExchange = _Exchange
    impl_fake.FakeIncomingMessage = _IncomingMessage
    impl_fake.FakeListener = _Listener
    # Looked up by name in this module when the transport is made.
    impl_fake.FakeDriver = _Driver


class _RemoteFailure(Exception):
    """Carries an exception as the text that a broker would carry."""


class _Exchange(impl_fake.FakeExchange):
    def deliver_message(self, *args: Any, **kwargs: Any) -> None:
        super().deliver_message(*args, **kwargs)
        with _arrived:
            _arrived.notify_all()


class _IncomingMessage(impl_fake.FakeIncomingMessage):
    def reply(self, reply: Any = None, failure: Any = None) -> None:
        if failure:
            text = common.serialize_remote_exception(failure)
            failure = (_RemoteFailure, _RemoteFailure(text), None)
        super().reply(_copy(reply), failure)


class _Listener(impl_fake.FakeListener):
    @base.batch_poll_helper
    def poll(self, timeout: float | None = None) -> Any:
        deadline = None if timeout is None else time.monotonic() + timeout
        while not self._stopped.is_set():
            with _arrived:
                message = self._next()
                if message is not None:
                    return message
                # Not for ever: stop() does not come this way.
                pause = 0.5
                if deadline is not None:
                    pause = min(pause, deadline - time.monotonic())
                    if pause <= 0:
                        return None
                _arrived.wait(pause)
        return None

    def _next(self) -> Any:
        for target in self._targets:
            exchange = self._exchange_manager.get_exchange(target.exchange)
            context, message, *rest = exchange.poll(target, self._pool)
            if message is not None:
                # Fanned out, one message reaches several listeners.
                return impl_fake.FakeIncomingMessage(
                    _copy(context), _copy(message), *rest
                )
        return None


class _Driver(impl_fake.FakeDriver):
    def _send(
        self,
        target: Any,
        ctxt: Any,
        message: Any,
        wait_for_reply: bool | None = None,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        if isinstance(message, dict) and 'method' in message:
            counters.rpc.add(message['method'])
        try:
            return super()._send(
                target, ctxt, message, wait_for_reply, *args, **kwargs
            )
        except _RemoteFailure as failure:
            error = common.deserialize_remote_exception(
                failure.args[0], self._allowed_remote_exmods
            )
        raise error


def _copy(value: Any) -> Any:
    return json.loads(jsonutils.dumps(value))
