# SPDX-License-Identifier: Apache-2.0
"""How an action waits for its server, and is withdrawn from it.

The agents keep silent until the end. What ``contrib/agent`` adds to them
reports that an action has started, and stops what takes too long.
"""

import time
import uuid

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins import retrying
from heat_plugins.configs import hooks
from heat_plugins.deployments import deliveries
from heat_plugins.deployments import delivering
from heat_plugins.deployments import failures
from heat_plugins.deployments import histories
from heat_plugins.deployments import outside
from heat_plugins.deployments import receptions
from heat_plugins.objectstore import keys
from heat_plugins.signals import body
from heat_plugins.signals import watcher
from heat_plugins.timeline import kinds

LOG = foreign.logger(__name__)

#: How long to leave an object store alone that does not answer, in seconds.
STORE_DELAY = 5

# How often one action is delivered because of changed keys, at most.
_DELIVERIES = 3


class Waiter:
    """One action of one deployment, from its delivery to its end.

    :ivar trouble: since when the object store or the database keeps the
        action from continuing; None if they do not.
    """

    def __init__(
        self,
        order: deliveries.Order,
        *,
        resource: outside.Resource,
        history: histories.History,
        deliverer: delivering.Deliverer,
        engine: outside.Engine,
        resumes: bool = False,
    ) -> None:
        """Begin.

        :param resumes: whether the server has it already, from an engine that
            has died; its result may have arrived.
        """
        self._resumes = resumes
        self.trouble: retrying.Trouble | None = None
        self._order = order
        self._resource = resource
        self._history = history
        self._deliverer = deliverer
        self._engine = engine
        self._rows = engine.rows
        self._signals = engine.signals
        self._watcher = engine.watcher
        self._stack = engine.stack
        self._loop = engine.loop
        self._settings = engine.settings
        self._since = time.monotonic()
        limit = order.terms.timeout
        self._deadline = self._since + limit if limit else None
        self._config_id = str(uuid.uuid4())
        # Configs that the server may have until it is given this one: of
        # earlier attempts, of which the database did not say whether they
        # were written, and of an engine that has died.
        self._lost_ids: set[str] = set()
        # None until the server has the config.
        self._reception: receptions.Reception | None = None
        # When the server must have reported; None if it need not.
        self._report_deadline: float | None = None
        self._has_begun = False
        # A signer whose URLs the object store refuses, as an event has said,
        # and how often the action was delivered again because of that.
        self._refused_signer: keys.Signer | None = None
        self._repetitions = 0

    @property
    def pause(self) -> int | None:
        """Seconds to leave it alone; None if the server has the config."""
        return STORE_DELAY if self._reception is None else None

    # Delivery

    def begin(self) -> bool:
        """Deliver the action, if what that takes is available now.

        :returns: whether there is nothing to wait for.
        """
        try:
            with self._rows.guarded():
                return self._try_to_begin()
        except outside.Unanswered as exc:
            self._note_trouble(exc)
            # Something may have been written all the same.
            self._lost_ids.add(self._config_id)
            self._config_id = str(uuid.uuid4())
        except errors.Unavailable as exc:
            self._note_trouble(exc)
        return False

    def _try_to_begin(self) -> bool:
        before = self._history.row()
        if self._resumes and before is not None:
            self._config_id = before.config.id
            delivery = self._deliverer.resume(self._order, before)
            self._resumes = False
        else:
            if before is not None and before.in_progress:
                # An engine that has died since delivered it.
                self._lost_ids.add(before.config.id)
            delivery = self._deliverer.deliver(
                self._order, self._config_id, before
            )
        if not delivery.is_signalled:
            return True
        self._await(delivery)
        return False

    def _await(self, delivery: deliveries.Delivery) -> None:
        signalling = delivery.signalling
        self.trouble = None
        self._reception = reception = receptions.Reception(
            delivery, self._order, history=self._history, engine=self._engine
        )
        limit = self._order.terms.delivery_timeout
        self._report_deadline = None
        if limit is not None and signalling.brings_reports:
            self._report_deadline = time.monotonic() + limit
        if signalling.watched:
            self._watcher.join(reception.ticket)
        LOG.info(
            '%(deployment)s waits for a signal of %(action)s from server '
            '%(server)s by %(transport)s',
            {
                'deployment': self._resource.label,
                'action': self._order.action,
                'server': self._order.server.id,
                'transport': signalling.transport,
            },
        )
        tool = self._unknown_hook
        if tool is not None:
            text = hooks.warning(tool, self._settings.known_hooks)
            LOG.warning('%s: %s', self._resource.label, text)
            self._tell(kinds.reason(kinds.Kind.UNKNOWN_HOOK, text))

    def _tell(self, reason: str) -> None:
        self._resource.tell(self._order.action, reason)

    @property
    def _unknown_hook(self) -> str | None:
        """The hook that runs it, if servers may lack that."""
        return self._order.unknown_hook(self._settings.known_hooks)

    # Waiting

    def check(self, until: float | None = None) -> bool:
        """Say whether the action has ended; blocks as long as Heat lets it.

        :param until: when it must return, by `time.monotonic`; None: never.
        :raises failures.Error: it has failed.
        """
        while not self._check(until):
            if not self._may_block(until):
                return False
        self._leave()
        # A failure is logged by Heat, with the resource and its stack.
        LOG.info(
            '%(deployment)s has ended %(action)s on server %(server)s',
            {
                'deployment': self._resource.label,
                'action': self._order.action,
                'server': self._order.server.id,
            },
        )
        return True

    def _may_block(self, until: float | None) -> bool:
        """Say whether to go on without a sleep of Heat's.

        There must be something that wakes it, and nothing to ride out.
        """
        return (
            self._reception is not None
            and self._reception.signalling.watched
            and self.trouble is None
            and self._patience(until) > 0
            and self._loop.goes_on()
        )

    def _patience(self, until: float | None) -> float:
        """Return the seconds for which to block until a signal is seen."""
        report = None if self._has_begun else self._report_deadline
        return self._loop.patience(self._deadline, report, until)

    def _check(self, until: float | None) -> bool:
        if self._check_end(until) or self._check_begun():
            return True
        if self._stack.is_cancelled(self._since):
            self.withdraw()
            raise failures.cancelled(self._order)
        return self._check_deadline()

    def _check_end(self, until: float | None) -> bool:
        reception = self._reception
        if reception is None:
            done = self.begin()
            if not done and self._reception is None:
                self._check_trouble()
            return done
        if not reception.signalling.watched:
            return _is_complete(reception.from_queue())
        try:
            with self._rows.guarded(everything=True):
                return self._check_signal(reception, self._patience(until))
        except outside.Unanswered as exc:
            self._note_trouble(exc)
        self._check_trouble()
        return False

    def _check_signal(
        self, reception: receptions.Reception, patience: float
    ) -> bool:
        ticket = reception.ticket
        seen = self._watcher.wait([ticket], patience)
        sight = seen.get(ticket, watcher.Sight.WAITING)
        if sight is watcher.Sight.WAITING:
            # What could not be fetched is no longer listed.
            self.trouble = None
            self._check_trouble()
            return self._check_key(reception)
        if sight in (watcher.Sight.ARRIVED, watcher.Sight.PEEK):
            outcome = self._take_signal(reception)
            if outcome is None:
                if sight is watcher.Sight.ARRIVED and self.trouble is None:
                    self._watcher.absent(ticket)
                self._check_trouble()
                return False
        else:
            outcome = reception.settled()
        if _is_complete(outcome):
            return True
        # The watcher has forgotten it, and its row is not settled.
        self._watcher.join(ticket)
        return False

    def _take_signal(
        self, reception: receptions.Reception
    ) -> body.Outcome | None:
        """Take a signal, if there is one; note what keeps that from it."""
        try:
            outcome = reception.take()
        except errors.ServiceError as exc:
            self._note_trouble(exc)
            return None
        self.trouble = None
        return outcome

    def _has_ended(self, reception: receptions.Reception) -> bool:
        """Poll for the end past what the watcher saw last."""
        return _is_complete(
            self._take_signal(reception) or reception.settled()
        )

    # Reports

    def _check_begun(self) -> bool:
        """Note that the server has started; say if the action has ended.

        :raises failures.Error: it has not begun, and there is no more time.
        """
        reception = self._reception
        if self._has_begun or reception is None:
            return False
        if not reception.signalling.watched:
            return False
        if self._watcher.has_begun(reception.ticket):
            self._note_begun(reception.ticket)
            return False
        deadline = self._report_deadline
        if deadline is None or time.monotonic() < deadline:
            return False
        if self._has_ended(reception):
            return True
        try:
            has_begun = reception.has_report()
        except errors.ServiceError:
            # Unknown; the callers decide how long to retry.
            return False
        if has_begun:
            self._note_begun(reception.ticket)
            return False
        raise failures.not_reported(self._order, self._unknown_hook)

    def _note_begun(self, ticket: watcher.Ticket) -> None:
        self._has_begun = True
        if self._rows.begin([ticket]):
            self._tell(started(self._order.action, self._order.server.name))
        LOG.info(
            '%(deployment)s: server %(server)s has started %(action)s',
            {
                'deployment': self._resource.label,
                'server': self._order.server.id,
                'action': self._order.action,
            },
        )

    # What goes wrong

    def _check_key(self, reception: receptions.Reception) -> bool:
        """Answer a changed key; say whether the action has ended."""
        signer = reception.signalling.signer
        if signer is None or self._signals.key_holds(signer):
            return False
        if signer == self._refused_signer:
            return False
        self._refused_signer = signer
        outcome = self._take_signal(reception)
        if outcome is not None and _is_complete(outcome):
            return True
        repeats = self._order.is_repeatable and self._repetitions < _DELIVERIES
        reason = failures.key_changed(
            self._order, f'server {self._order.server.id}', repeats=repeats
        )
        LOG.warning('%s: %s', self._resource.label, reason)
        self._tell(reason)
        return repeats and self._repeat()

    def _repeat(self) -> bool:
        self._repetitions += 1
        self._leave()
        self._reception = None
        self._has_begun = False
        self._lost_ids.add(self._config_id)
        self._config_id = str(uuid.uuid4())
        return self.begin()

    def _note_trouble(self, error: errors.ServiceError) -> None:
        """Note what blocks an action; log when that begins."""
        # The watcher logs its own, which is old where no deployment waits.
        if not (self.trouble or (self._reception and self._watcher.trouble)):
            LOG.warning(
                '%(deployment)s: cannot continue %(action)s; retrying: '
                '%(error)s',
                {
                    'deployment': self._resource.label,
                    'action': self._order.action,
                    'error': error,
                },
            )
        self.trouble = retrying.Trouble.of(error, self.trouble)

    def _check_trouble(self) -> None:
        """Fail if the object store has been out of order for too long."""
        trouble, reception = self.trouble, self._reception
        # What the object store does is nothing to the other transports.
        if reception is not None and reception.ticket.object_name is not None:
            trouble = trouble or self._watcher.trouble
            self._stack.renew_access()
        if trouble is not None and self._settings.is_over_budget(trouble):
            raise failures.in_trouble(
                self._order, trouble, is_delivered=reception is not None
            )

    def _check_deadline(self) -> bool:
        """Poll for the last time; fail if there is nothing by then."""
        if self._deadline is None or time.monotonic() < self._deadline:
            return False
        if self._reception is None:
            error = self.trouble.error if self.trouble else None
            raise failures.not_delivered(self._order, error)
        if self._has_ended(self._reception):
            return True
        raise failures.not_signalled(
            self._order,
            self._config_id,
            None if self._has_begun else self._unknown_hook,
            has_begun=self._has_begun,
        )

    def withdraw(self) -> None:
        """Withdraw the action from its server, unless it has ended."""
        self._leave()
        row = self._history.row()
        ours = {self._config_id, *self._lost_ids}
        if row is not None and row.in_progress and row.config.id in ours:
            self._request_stop()
            self._history.withdraw(row)

    def _request_stop(self) -> None:
        """Tell the server, which may have started it, to stop."""
        if self._reception is None:
            return
        name = self._reception.ticket.object_name
        if name is not None:
            self._signals.request_stop(name)

    def _leave(self) -> None:
        if self._reception is not None:
            self._watcher.leave(self._reception.ticket)


def started(action: str, server: str) -> str:
    """Return the reason of the event that a server has started."""
    return kinds.reason(kinds.Kind.STARTED, f'{action} on server {server}')


def _is_complete(outcome: body.Outcome) -> bool:
    """Say whether an action is complete.

    :raises failures.Error: it has failed.
    """
    if outcome.status in (deliveries.COMPLETE, deliveries.IN_PROGRESS):
        return outcome.status == deliveries.COMPLETE
    if outcome.status == deliveries.FAILED:
        raise failures.Error(f'Deployment to server failed: {outcome.reason}')
    # Heat's API lets its users write any status there.
    raise failures.Error(
        f'Another client of Heat has set the status {outcome.status}, which '
        'is neither COMPLETE nor FAILED'
    )
