# SPDX-License-Identifier: Apache-2.0
"""How a deployment waits for its server, and takes an action back from it."""

from collections import abc
import contextlib
import dataclasses
import time
from typing import Any

from heat.common import exception
from heat.common.i18n import _
from heat.engine import resource
from heat.rpc import api as rpc_api
from oslo_config import cfg
from oslo_db import exception as db_exception

from heat_plugins import config
from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins import masking
from heat_plugins.configs import hooks
from heat_plugins.engine import hub as hubs
from heat_plugins.engine import rows
from heat_plugins.engine import servers
from heat_plugins.objectstore import keys
from heat_plugins.resources import transports
from heat_plugins.signals import beginning
from heat_plugins.signals import body
from heat_plugins.signals import watcher
from heat_plugins.timeline import kinds

LOG = foreign.logger(__name__)

config.register_opts(cfg.CONF)

# How often to ask whether the server of a DELETE is still there, in seconds.
SERVER_LOOK = 30

# How long to leave an object store alone that does not answer, in seconds.
STORE_DELAY = 5


@dataclasses.dataclass(kw_only=True)
class Wait:
    """An action that was handed to a server, or is going to be.

    :ivar config: the config to run, as Heat's API shows it.
    :ivar config_id: the id of what is derived from it.
    :ivar lost_ids: those that the server may have until it is given this
        one: of earlier attempts, of which the database did not say whether
        they were written, and of an engine that has died.
    :ivar mask: masks what is hidden of the config's inputs.
    :ivar server: as it was known when the action began.
    :ivar hub: what is shared with others below the same root stack.
    :ivar ticket: for the signal; None until the server has the config.
    :ivar watched: whether the hub looks for the signal, rather than Heat's
        own class.
    :ivar begun: by `time.monotonic`, like the other times.
    :ivar deadline: None where the stack's counts alone.
    :ivar delivery_deadline: when the server has to have reported that it has
        begun; None if it need not.
    :ivar has_begun: whether it has.
    :ivar signer: what has signed the URL that the server has, if any.
    :ivar refused_signer: one of which the object store takes no URL any more,
        as was told.
    :ivar deliveries: how often that had the action delivered again.
    :ivar next_server_look: when to ask whether the server is still there.
    :ivar trouble: since when the object store keeps this action from going
        on: its URL cannot be made, or its signal cannot be fetched.
    """

    action: str
    config: abc.Mapping[str, Any]
    config_id: str
    server: servers.Server
    hub: hubs.Hub
    begun: float
    deadline: float | None
    next_server_look: float
    ticket: watcher.Ticket | None = None
    watched: bool = False
    delivery_deadline: float | None = None
    has_begun: bool = False
    signer: keys.Signer | None = None
    refused_signer: keys.Signer | None = None
    deliveries: int = 0
    trouble: watcher.Trouble | None = None
    lost_ids: set[str] = dataclasses.field(default_factory=set)
    mask: masking.Mask = dataclasses.field(default_factory=masking.Mask)

    @property
    def declared(self) -> abc.Sequence[abc.Mapping[str, Any]]:
        """The outputs that the config declares."""
        outputs = self.config[rpc_api.SOFTWARE_CONFIG_OUTPUTS]
        return [each.as_dict() for each in outputs]


class Waiting:
    """The part of a deployment that waits for a signal."""

    # The action that has begun and not ended.
    _wait: Wait | None = None

    def _begin_wait(self, wait, signalling):
        wait.trouble = None
        wait.watched = signalling.watched
        wait.signer = signalling.signer
        wait.ticket = watcher.Ticket(
            deployment_id=self.resource_id,
            config_id=wait.config_id,
            object_name=signalling.object_name,
            report_name=signalling.report_name,
        )
        wait.delivery_deadline = self._delivery_deadline(signalling)
        if wait.watched:
            wait.hub.watcher.join(wait.ticket)
        LOG.info(
            '%(deployment)s waits for a signal of %(action)s from server '
            '%(server)s by %(transport)s',
            {
                'deployment': self._label,
                'action': wait.action,
                'server': wait.server.id,
                'transport': signalling.transport,
            },
        )
        self._warn_of_unknown_hook(wait)

    def _warn_of_unknown_hook(self, wait):
        """Say in an event, and to the operator, what servers may lack."""
        tool = self._unknown_hook(wait)
        if tool is None:
            return
        text = hooks.warning(tool, cfg.CONF.heat_plugins.known_hooks)
        LOG.warning('%s: %s', self._label, text)
        reason = kinds.reason(kinds.Kind.UNKNOWN_HOOK, text)
        self._add_event(wait.action, self.IN_PROGRESS, reason)

    def _unknown_hook(self, wait):
        tool = self._tool(wait.action, wait.config) or ''
        known = hooks.is_known(tool, cfg.CONF.heat_plugins.known_hooks)
        return None if known else tool

    def _about_hook(self, wait):
        """Return what to add to the reason of one that never started."""
        tool = self._unknown_hook(wait)
        if tool is None:
            return ''
        return _('; heat-agents have no hook "%s"') % foreign.line(tool, 40)

    def check_create_complete(self, wait):
        """Say whether CREATE has ended."""
        return self._await(wait)

    def check_update_complete(self, wait):
        """Say whether UPDATE has ended."""
        return self._await(wait)

    def check_suspend_complete(self, wait):
        """Say whether SUSPEND has ended."""
        return self._await(wait)

    def check_resume_complete(self, wait):
        """Say whether RESUME has ended."""
        return self._await(wait)

    def _await(self, wait):
        """Say whether an action has ended; raise if it has failed."""
        if not wait:
            return True
        while not self._look(wait):
            if not self._may_block(wait):
                return False
        self._wait = None
        if wait.ticket is not None:
            wait.hub.leave(wait.ticket)
        # A failure is logged by Heat, with the resource and its stack.
        LOG.info(
            '%(deployment)s has ended %(action)s on server %(server)s',
            {
                'deployment': self._label,
                'action': wait.action,
                'server': wait.server.id,
            },
        )
        return True

    def _may_block(self, wait):
        """Say whether to go on without a sleep of Heat's.

        There must be something that wakes it, and nothing to ride out. Who
        runs DELETE asks now and then whether the server is still there.
        """
        return (
            wait.watched
            and wait.ticket is not None
            and wait.trouble is None
            and (
                wait.action != self.DELETE
                or time.monotonic() <= wait.next_server_look
            )
            and self._patience(wait) > 0
            and self._loop.goes_on()
        )

    def _patience(self, wait):
        """Return the seconds for which to block until a signal is seen."""
        delivery = None if wait.has_begun else wait.delivery_deadline
        return self._loop.patience(wait.deadline, delivery)

    def _look(self, wait):
        done = self._look_for_end(wait) or self._check_begun(wait)
        if not done:
            self._check_cancelled(wait)
        if not done and wait.deadline is not None:
            done = self._check_deadline(wait)
        if wait.ticket is None and not done:
            raise resource.PollDelay(STORE_DELAY)
        return done

    def _look_for_end(self, wait):
        if wait.ticket is None:
            done = self._begin(wait)
            if wait.ticket is None and not done:
                self._check_trouble(wait)
            return done
        if not wait.watched:
            # Zaqar: Heat's own show reads the queue.
            return self._check_settled_by_heat(wait)
        try:
            return self._look_for_signal(wait)
        except db_exception.DBError as exc:
            self._note_trouble(wait, rows.unavailable(exc))
        self._check_trouble(wait)
        return False

    def _check_settled_by_heat(self, wait):
        """Say whether Heat has settled the row by a signal; mask that."""
        try:
            return self._check_complete()
        finally:
            row = self._row()
            if row is not None and row.status != self.IN_PROGRESS:
                self._mask_outputs(wait, row)

    def _mask_outputs(self, wait, row):
        found = row.output_values or {}
        declared = {each['name'] for each in wait.declared}
        masked = {
            name: value if name in declared else wait.mask.output(value)
            for name, value in found.items()
        }
        if masked != found:
            rows.change(self.context, self.resource_id, output_values=masked)

    def _look_for_signal(self, wait):
        seen = wait.hub.watcher.wait([wait.ticket], self._patience(wait))
        sight = seen.get(wait.ticket, watcher.Sight.WAITING)
        if sight is watcher.Sight.WAITING:
            # Whatever could not be fetched was not listed any more.
            wait.trouble = None
            self._check_trouble(wait)
            return self._check_key(wait)
        if sight in (watcher.Sight.ARRIVED, watcher.Sight.PEEK):
            outcome = self._take_signal(wait)
            if outcome is None:
                if sight is watcher.Sight.ARRIVED and wait.trouble is None:
                    wait.hub.watcher.absent(wait.ticket)
                self._check_trouble(wait)
                return False
        else:
            outcome = self._settled(wait)
        if self._is_complete(outcome):
            return True
        # The watcher has forgotten about it, and nobody has settled it.
        wait.hub.watcher.join(wait.ticket)
        return False

    @staticmethod
    def _is_complete(outcome):
        if outcome.status in (body.COMPLETE, rows.IN_PROGRESS):
            return outcome.status == body.COMPLETE
        if outcome.status == body.FAILED:
            raise exception.Error(
                _('Deployment to server failed: %s') % outcome.reason
            )
        # Heat's API lets people write there what they like.
        raise exception.Error(
            _(
                'Somebody has given the deployment the status %s, which is '
                'neither COMPLETE nor FAILED'
            )
            % outcome.status
        )

    def _settled(self, wait):
        """Return how somebody else has ended what is waited for."""
        row = self._row()
        if row is None or row.config_id != wait.config_id:
            raise exception.Error(
                _(
                    'The deployment was withdrawn by somebody else while it '
                    'waited for the signal of %s'
                )
                % wait.action
            )
        return body.Outcome(
            status=row.status,
            reason=row.status_reason,
            outputs=row.output_values or {},
        )

    def _take_signal(self, wait):
        """Fetch a signal and settle the row by it.

        :returns: how the action has ended; None if there is no signal.
        """
        hub, ticket = wait.hub, wait.ticket
        limit = cfg.CONF.heat_plugins.signal_body_limit
        try:
            content = hub.fetch(ticket.object_name, limit)
            outcome = body.outcome(
                body.parse(content), wait.declared, wait.mask
            )
        except errors.BadSignal as exc:
            outcome = body.failure(str(exc))
        except errors.NoObject:
            wait.trouble = None
            return None
        except errors.ServiceError as exc:
            self._note_trouble(wait, exc)
            return None
        counts = rows.settle(
            self.context, ticket.deployment_id, ticket.config_id, outcome
        )
        wait.trouble = None
        # It may hold secrets, and nobody will ask for it again.
        hub.discard(ticket.object_name)
        if ticket.report_name and hub.watcher.has_begun(ticket):
            hub.discard(ticket.report_name)
        return outcome if counts else self._settled(wait)

    def _check_cancelled(self, wait):
        """Fail if the stack's action was cancelled or is rolled back."""
        if wait.hub.cancellation.of(self.stack, since=wait.begun):
            self._withdraw(wait)
            raise exception.Error(
                _('%(action)s was cancelled before server %(server)s answered')
                % {
                    'action': wait.action,
                    'server': self._server_name(wait.server),
                }
            )

    def _note_trouble(self, wait, error):
        """Note what keeps an action from going on; log when that begins."""
        # The watcher logs its own, which is old where nobody waits.
        if not (wait.trouble or (wait.ticket and wait.hub.watcher.trouble)):
            LOG.warning(
                '%(deployment)s: %(action)s cannot go on, which is tried '
                'again: %(error)s',
                {
                    'deployment': self._label,
                    'action': wait.action,
                    'error': error,
                },
            )
        wait.trouble = trouble(error, wait.trouble)

    def _check_trouble(self, wait):
        """Fail if the object store has been out of order for too long."""
        trouble = wait.trouble
        # What the object store does is nothing to the other transports.
        if wait.ticket is not None and wait.ticket.object_name is not None:
            trouble = trouble or wait.hub.watcher.trouble
            # If they cannot be had the trouble goes on, up to the budget.
            with contextlib.suppress(errors.Denied):
                wait.hub.adopt(self.stack)
        if trouble is not None and over_budget(trouble):
            failure = transports.NoAnswer
            if wait.ticket is not None:
                failure = exception.Error
            raise failure(
                _(
                    '%(action)s could not be handed over, or its signal not '
                    'be looked for, in the last %(seconds)d s: %(error)s'
                )
                % {
                    'action': wait.action,
                    'seconds': trouble.seconds,
                    'error': trouble.error,
                }
            )

    def _check_deadline(self, wait):
        """Look for the last time; fail if there is nothing by now."""
        now = time.monotonic()
        if now < wait.deadline:
            return False
        if wait.ticket is not None and self._last_look(wait):
            return True
        values = {
            'server': self._server_name(wait.server),
            'action': wait.action,
            'seconds': round(wait.deadline - wait.begun),
            'error': wait.trouble.error if wait.trouble else None,
        }
        if wait.ticket is None:
            raise transports.NoAnswer(
                _(
                    '%(action)s could not be handed to server %(server)s '
                    'within %(seconds)d s (property "timeout"): %(error)s'
                )
                % values
            )
        raise exception.Error(
            _(
                'Server %(server)s has not signalled %(action)s within '
                '%(seconds)d s (property "timeout")%(hook)s. %(known)s'
            )
            % {
                **values,
                'hook': '' if wait.has_begun else self._about_hook(wait),
                'known': beginning.explained(
                    wait.config_id, started=wait.has_begun
                ),
            }
        )

    def _last_look(self, wait):
        """Look for the end past what was seen last; say if it is there."""
        outcome = None
        if wait.ticket.object_name is not None:
            outcome = self._take_signal(wait)
        return self._is_complete(outcome or self._settled(wait))

    def action_handler_task(self, action, args=None, action_prefix=None):
        """Run an action; if it ends before its signal, take it back.

        Heat tells a resource of a cancellation only once it has begun to
        look whether the action is complete.
        """
        try:
            with rows.unquoted():
                yield from super().action_handler_task(
                    action, args=args, action_prefix=action_prefix
                )
        finally:
            try:
                self._handle_cancel()
            except Exception:
                LOG.exception(
                    '%s could not be taken back from its server', self._label
                )

    @rows.unquoted()
    def _handle_cancel(self):
        # Heat calls it, too, and logs how it fails.
        wait, self._wait = self._wait, None
        if wait is not None:
            self._withdraw(wait)

    def _withdraw(self, wait):
        """Take an action back from its server, unless it has ended.

        The row goes, and with it the config from the server's metadata: an
        agent that has not fetched it never runs it. The row comes back, with
        the same id, at the next action.
        """
        if wait.ticket is not None:
            wait.hub.leave(wait.ticket)
        row = self._row()
        if row is None or row.config_id not in (
            wait.config_id,
            *wait.lost_ids,
        ):
            return
        self._take_back(row)


def over_budget(trouble):
    """Say whether trouble has lasted longer than is ridden out."""
    return trouble.seconds > cfg.CONF.heat_plugins.swift_error_budget


def trouble(error, before):
    """Return the trouble that an error begins, or goes on with."""
    return watcher.Trouble.of(error, before, time.monotonic)
