# SPDX-License-Identifier: Apache-2.0
"""What Heat holds of the notices of an operation; see `notifying`.

A software config has the webhook's URL and secret, as the config that binds
the operation has its key, and to create one takes a role in Heat. A deployment
of it has, as its reason, what is recorded of the notices. Both go with the
operation.
"""

from collections import abc
import dataclasses
import json
from typing import Any, Final

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins import heat_values
from heat_plugins import stored
from heat_plugins import tokens
from heat_plugins.runs import notifying
from heat_plugins.runs import orchestration
from heat_plugins.runs.fleet import operations
from heat_plugins.runs.fleet.records import binding

#: The action of that deployment.
ACTION: Final = 'NOTIFY'

#: Characters of such a config at most.
LENGTH: Final = 20_000

_Event = notifying.NoticeEvent

_OF_PHASE = {
    operations.Phase.FAILED: _Event.FAILURE,
    operations.Phase.TIMED_OUT: _Event.TIMEOUT,
    operations.Phase.COMPLETE: _Event.RECOVERY,
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class NoticeOrder:
    """Where, and of what, a user wants notices of an operation.

    :ivar to: what may be shown of the URL.
    :ivar stacks: the IDs of the root stacks, one of which has credentials.
    """

    VERSION = 1

    to: str
    url: str = dataclasses.field(repr=False)
    secret: str = dataclasses.field(repr=False)
    events: tuple[_Event, ...] = tuple(_Event)
    waits: int = 0
    stacks: tuple[str, ...] = ()

    @property
    def rules(self) -> notifying.NoticeRules:
        return notifying.NoticeRules(
            to=self.to, events=self.events, waits=self.waits
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class NoticeRecord:
    """What is recorded of the notices of an operation.

    :ivar was_read: whether an end of it was.
    """

    VERSION = 1

    book: notifying.NoticeBook = dataclasses.field(
        default_factory=notifying.NoticeBook
    )
    was_read: bool = False

    @classmethod
    def read(cls, text: str | None) -> 'NoticeRecord':
        """Read what `text` returns.

        :raises ValueError: it is something else.
        """
        return stored.read(cls, bounds.read_json(text or ''))

    def text(self) -> str:
        return json.dumps(stored.versioned(type(self), stored.dump(self)))

    def with_book(self, book: notifying.NoticeBook) -> 'NoticeRecord':
        return dataclasses.replace(self, book=book)

    def with_end(
        self, order: NoticeOrder, control: operations.Control
    ) -> 'NoticeRecord':
        """Return it once the end of the operation was read.

        One that continues after all has none.
        """
        if not control.phase.ended:
            return self
        book, event = self.book, _OF_PHASE.get(control.phase)
        if event is not None:
            tick = control.ended_at or control.began_at
            notice = notifying.Notice(event=event, tick=tick, number=1)
            book = book.with_notice(order.rules, notice)
        return dataclasses.replace(self, book=book, was_read=True)

    def with_wait(
        self, order: NoticeOrder, begun: int, now: float
    ) -> 'NoticeRecord':
        """Return it with the notice that the operation has not ended in time.

        :param begun: when it was created.
        """
        is_told = begun == self.book.waited or not order.waits
        if is_told or now < begun + order.waits:
            return self
        notice = notifying.Notice(event=_Event.WAITING, tick=begun)
        book = self.book.with_notice(order.rules, notice)
        return dataclasses.replace(
            self, book=dataclasses.replace(book, waited=begun)
        )


def read(values: object) -> NoticeOrder:
    """Read the order of a config.

    :param values: as Heat has them, in any form.
    :raises ValueError: it is none.
    """
    if not isinstance(values, str) or len(values) > LENGTH:
        raise ValueError('it is not a text, or too long')
    return stored.read(NoticeOrder, bounds.read_json(values))


def watch(
    heat: orchestration.Deploying,
    order: operations.OperationOrder,
    wanted: NoticeOrder,
) -> None:
    """Let engines know of the notices of an operation before that starts.

    :raises errors.Refused: none sends them; the message has the remedy.
    """
    values = {
        **stored.dump(wanted),
        'stacks': order.stack_ids[: binding.STACKS],
    }
    config_id = heat.create_config(
        heat_values.DerivedConfig(
            name=order.id,
            group=binding.NOTICES,
            config=json.dumps(stored.versioned(NoticeOrder, values)),
            inputs=[],
            outputs=[],
            options={},
        )
    )
    row_id = None
    try:
        row_id = heat.create_deployment(
            config_id=config_id,
            server_id=order.id,
            action=ACTION,
            reason=NoticeRecord().text(),
        )
        answer = heat.set_status(row_id, binding.IN_PROGRESS)
        if not tokens.TELLS.marks(answer):
            raise errors.Refused(_refusal(answer))
    except BaseException:
        if row_id is not None:
            heat.delete_deployment(row_id)
        heat.delete_config(config_id)
        raise


def _refusal(answer: str | None) -> str:
    if tokens.REFUSES.marks(answer):
        return f'Nothing was started: {tokens.shown(answer or "")}'
    return (
        'Nothing was started, as no heat-engine answers that it sends '
        'notices. Ask the operator to upgrade heat-plugins there, with '
        '[heat_plugins] rescue_interval above 0, or leave out --notify'
    )


def error(heat: orchestration.Deploying, operation_id: str) -> str:
    """Return why the last notice was given up; empty if it was not."""
    for row in heat.deployments(operation_id):
        if row.action == ACTION:
            try:
                return NoticeRecord.read(row.reason).book.error
            except ValueError as exc:
                return f'Its record is unreadable: {exc}'
    return ''


def asked(values: abc.Mapping[str, Any], to: str) -> NoticeOrder:
    """Return what a user asks for.

    :param to: what may be shown of the URL.
    :raises errors.Refused: it is invalid; the message quotes no value.
    """
    known = ('url', 'secret', 'events', 'waits')
    for name in values:
        if name not in known:
            raise errors.Refused(
                f'"notify" has no key {bounds.shortened(name)}'
                + bounds.did_you_mean(name, known)
            )
    try:
        wanted = stored.read(NoticeOrder, {**values, 'to': to})
    except ValueError as exc:
        raise errors.Refused(
            '"notify" needs the texts "url" and "secret"; "events" is a list '
            f'of {", ".join(_Event)}, and "waits" a number of seconds'
        ) from exc
    notifying.check_secret(wanted.secret)
    return wanted
