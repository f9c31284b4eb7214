# SPDX-License-Identifier: Apache-2.0
"""OS::Heat::SoftwareSchedule."""

from collections import abc
import contextlib
import dataclasses
import time
from typing import Any

from heat.common.i18n import _
from heat.engine import attributes
from heat.engine import constraints
from heat.engine import function
from heat.engine import properties
from heat.engine import resource
from oslo_config import cfg

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins import stored
from heat_plugins.clients import webhooks
from heat_plugins.configs import actions
from heat_plugins.engine import callers
from heat_plugins.engine import heat_types
from heat_plugins.engine import run_room
from heat_plugins.engine import transports
from heat_plugins.engine.database import resources
from heat_plugins.engine.database import rows
from heat_plugins.engine.database import schedule_rows
from heat_plugins.resources import bases
from heat_plugins.resources.workflows import mistral_calls
from heat_plugins.runs import notifying
from heat_plugins.runs import ordering
from heat_plugins.runs import run_records
from heat_plugins.runs import summary
from heat_plugins.runs.schedules import schedule_deciding
from heat_plugins.runs.schedules import schedule_signals
from heat_plugins.runs.schedules import schedules

_Kept = schedule_deciding.KeptSchedule

# Seconds by which the daily check comes early for a new schedule: the rest of
# its stack is there an hour later.
_UNTIL_CHECK = 82800

# How many of the next times are shown.
_UPCOMING = 5

# Seconds that an engine may need to start what is due, also after another one
# that has died as it did so; and those that a cut-off may be.
_LEAST_LATENESS, _LEAST_CUT_OFF = 120, 10

# The longest cut-off, and the most failures in a row.
_MOST_CUT_OFF, _MOST_FAILURES = 30 * 86400, 1000


class SoftwareSchedule(bases.Eventful, resource.Resource):
    """Runs an action of deployments by the clock.

    Each time that the schedule names becomes a run, which heat-engine starts
    and leads with the rights of the stack's owner. Times are local ones of a
    time zone: one that a change of the clock skips is due at the next valid
    time, one that the clock shows twice is due the first time.
    Suspending the stack pauses the schedule; deleting it ends the schedule.
    """

    support_status = mistral_calls.NOT_HEATS

    # Heat's own.
    _rsrc_prop_data_id: Any
    _stored_properties_data: Any

    TIMES = (
        CRON,
        AT,
        TIMEZONE,
        EXCLUDE,
        UNTIL,
        JITTER,
        START_WITHIN,
        CUT_OFF,
        OVERLAP,
        PAUSED,
        NOTE,
        PAUSE_AFTER_FAILURES,
    ) = (
        'cron',
        'at',
        'timezone',
        'exclude',
        'until',
        'jitter',
        'start_within',
        'cut_off',
        'overlap',
        'paused',
        'note',
        'pause_after_failures',
    )
    ACTION, INPUT_VALUES, TARGETS, STACK_TAG, LIMITS, NOTIFY = (
        'action',
        'input_values',
        'targets',
        'stack_tag',
        'limits',
        'notify',
    )
    NOTIFY_KEYS = (URL, SECRET, EVENTS, AFTER, WAITS) = (
        'url',
        'secret',
        'events',
        'after',
        'waits',
    )

    properties_schema = {
        CRON: bases.text(
            _(
                'Minute, hour, day of month, month and day of week, as in '
                'crontab; or @hourly, @daily, @weekly, @monthly, @yearly. '
                'Give either this or "at".'
            )
        ),
        AT: bases.text(
            _('The only time, in local time, such as "2026-11-20T22:00".')
        ),
        TIMEZONE: bases.text(
            _('IANA name of the time zone of all times.'), default='UTC'
        ),
        EXCLUDE: bases.several(
            _(
                'Days without times: dates ("2026-12-24"), ranges with both '
                'ends ("2026-12-24/2027-01-01") and weekdays ("sat").'
            ),
            default=[],
            schema=properties.Schema(properties.Schema.STRING),
        ),
        UNTIL: bases.text(
            _('The last day or time, in local time. Default: no end.'),
            default='',
        ),
        JITTER: bases.number(
            _('Seconds by which starts may be late, to spread the load.'),
            default=0,
            constraints=[constraints.Range(0, schedules.MOST_JITTER)],
        ),
        START_WITHIN: bases.number(
            _(
                'Seconds within which a time that was missed, as in an '
                'outage, starts late. Later it counts as missed.'
            ),
            default=schedules.START_WITHIN,
            constraints=[
                constraints.Range(_LEAST_LATENESS, schedules.MOST_LATENESS)
            ],
        ),
        CUT_OFF: bases.number(
            _(
                'Seconds after the start after which no further server '
                'starts. Default: no limit.'
            ),
            constraints=[constraints.Range(_LEAST_CUT_OFF, _MOST_CUT_OFF)],
        ),
        OVERLAP: bases.text(
            _(
                'What a time does while the run of an earlier one has not '
                'ended. skip: nothing. queue: it waits for the end; one at '
                'most does. cancel: it cancels that run first.'
            ),
            default=schedules.Overlap.SKIP.value,
            constraints=[
                constraints.AllowedValues(
                    [each.value for each in schedules.Overlap]
                )
            ],
        ),
        PAUSED: bases.flag(_('Whether nothing starts.')),
        NOTE: bases.text(
            _('Why the schedule is paused, for people.'),
            default='',
            constraints=[constraints.Length(max=bounds.PART)],
        ),
        PAUSE_AFTER_FAILURES: bases.number(
            _(
                'Failures in a row after which the schedule pauses itself; 0 '
                'for never.'
            ),
            default=0,
            constraints=[constraints.Range(0, _MOST_FAILURES)],
        ),
        ACTION: bases.text(
            _('The action to run, such as BACKUP.'), required=True
        ),
        INPUT_VALUES: bases.mapping(
            _("Inputs that override the deployments' own, by name."),
            default={},
        ),
        TARGETS: bases.several(
            _(
                'Deployments and groups, by get_resource, or paths of '
                'resources from the root stack, or patterns of such ("db*"). '
                'Default: all deployments that have the action.'
            ),
            default=[],
            schema=properties.Schema(properties.Schema.STRING),
        ),
        STACK_TAG: bases.text(
            _(
                'Run on the stacks with this tag. Default: on the stack of '
                'the schedule.'
            ),
            default='',
        ),
        LIMITS: bases.mapping(
            _(
                'Limits of each run: max_concurrent, max_errors, '
                'canary, approve_after_canary, pause, timeout, '
                'delivery_timeout, deadline, if_running.'
            ),
            default={},
        ),
        NOTIFY: bases.mapping(
            _(
                'Webhook to which heat-engine POSTs a notice when something '
                'fails. The operator permits hosts with [heat_plugins] '
                'notify_hosts.'
            ),
            # Neither a constraint nor Heat, which quotes what has another
            # type, may quote a URL or a secret.
            allow_conversion=True,
            schema={
                URL: bases.anything(
                    _('URL; from a hidden parameter.'), required=True
                ),
                SECRET: bases.anything(
                    _(
                        'Key of the signature, at least 16 characters; from '
                        'a hidden parameter.'
                    ),
                    required=True,
                ),
                EVENTS: bases.several(
                    _('What to tell. Default: all.'),
                    default=[each.value for each in notifying.NoticeEvent],
                    schema=properties.Schema(
                        properties.Schema.STRING,
                        constraints=[
                            constraints.AllowedValues(
                                [each.value for each in notifying.NoticeEvent]
                            )
                        ],
                    ),
                ),
                AFTER: bases.number(
                    _('Failures in a row from which on they are told.'),
                    default=1,
                    constraints=[constraints.Range(1, _MOST_FAILURES)],
                ),
                WAITS: bases.number(
                    _(
                        'Seconds after its start after which a run that has '
                        'not ended is told; 0 for never.'
                    ),
                    default=0,
                    constraints=[constraints.Range(0, _MOST_CUT_OFF)],
                ),
            },
        ),
    }

    (
        NEXT_TIMES,
        LAST_TIME,
        LAST_RUN,
        LAST_OPERATION,
        LAST_OUTCOME,
        MISSED,
        SKIPPED,
        PAUSED_ATTR,
        REASON,
        BACKFILL,
        NOTIFY_ERROR,
    ) = (
        'next_times',
        'last_time',
        'last_run',
        'last_operation',
        'last_outcome',
        'missed',
        'skipped',
        'paused',
        'reason',
        'backfill',
        'notify_error',
    )

    attributes_schema = {
        NEXT_TIMES: bases.live(
            attributes.Schema.LIST,
            _('The next five starts, in UTC; none while it is paused.'),
        ),
        LAST_TIME: bases.live(
            attributes.Schema.STRING,
            _(
                'The last time whose run was created or is starting, in UTC, '
                'without the jitter; null before that.'
            ),
        ),
        LAST_RUN: bases.live(
            attributes.Schema.STRING,
            _('ID of the last run; null before the first.'),
        ),
        LAST_OPERATION: bases.live(
            attributes.Schema.STRING,
            _('The same as last_run, for older templates.'),
        ),
        LAST_OUTCOME: bases.live(
            attributes.Schema.STRING,
            _(
                'How the last run ended, such as complete or failed; starting '
                'before it is created, then running; missed if the last time '
                'has not started.'
            ),
        ),
        MISSED: bases.live(
            attributes.Schema.INTEGER, _('How many times were missed.')
        ),
        SKIPPED: bases.live(
            attributes.Schema.INTEGER,
            _('How many did not start, for "overlap" or "cut_off".'),
        ),
        PAUSED_ATTR: bases.live(
            attributes.Schema.STRING,
            _(
                'Why the schedule is paused, or that its stack is suspended '
                'or being deleted; empty if it is not.'
            ),
        ),
        REASON: bases.live(
            attributes.Schema.STRING,
            _(
                'Why the last time could not start, its run has no end that '
                'can be read, or the next time cannot start as it should; '
                'empty if nothing is known against it.'
            ),
        ),
        BACKFILL: bases.live(
            attributes.Schema.INTEGER,
            _('How many times of the past a backfill has yet to run.'),
        ),
        NOTIFY_ERROR: bases.live(
            attributes.Schema.STRING,
            _(
                'Why heat-engine gave up the last notice; empty if it was '
                'sent.'
            ),
        ),
    }

    # What the template says

    def validate(self) -> None:
        """Validate as Heat does, then check the schedule and its limits.

        :raises StackValidationFailed: they are invalid.
        """
        super().validate()
        refusal = transports.refusal_of_runs(self)
        if refusal and not resources.exists(self):
            raise heat_types.invalid(self, refusal)
        if not self.stack.strict_validate or any(
            needed.action == self.INIT
            for needed in function.dependencies(self.properties.data)
        ):
            # It needs what is not created yet.
            return
        try:
            self._schedule(self.properties)
            self._order(self.properties, '')
            self._rules(self.properties)
        except errors.Error as exc:
            raise heat_types.invalid(self, exc) from exc

    def _schedule(self, props: heat_types.Properties) -> schedules.Schedule:
        """Return the times that the properties describe."""
        given = {
            name: props[name] for name in self.TIMES if props[name] is not None
        }
        return schedules.Schedule(
            **{
                **given,
                self.EXCLUDE: tuple(props[self.EXCLUDE]),
                self.OVERLAP: schedules.Overlap(props[self.OVERLAP]),
            },
            key=self.uuid or '',
        )

    def _rules(
        self, props: heat_types.Properties
    ) -> notifying.NoticeRules | None:
        """Return which notices are wanted; None for none.

        :raises errors.Refused: the operator does not permit the receiver.
        """
        given = props[self.NOTIFY]
        if not given:
            return None
        receiver = _receiver(given)
        notifying.check_secret(receiver['secret'])
        webhook = webhooks.Webhook.parse(receiver['url'])
        webhooks.Hosts(cfg.CONF.heat_plugins.notify_hosts).check(webhook)
        return notifying.NoticeRules(
            to=webhook.shown,
            events=tuple(map(notifying.NoticeEvent, given[self.EVENTS])),
            after=given[self.AFTER],
            waits=given[self.WAITS],
        )

    def receiver(self) -> dict[str, str]:
        """Return the URL and the secret of notices, as they are stored.

        :raises errors.Refused: they go nowhere.
        """
        with self.frozen_properties() as props:
            given = props[self.NOTIFY]
        if not given:
            raise errors.Refused('The schedule has no "notify"')
        return _receiver(given)

    def _order(
        self, props: heat_types.Properties, run_id: str
    ) -> ordering.Start:
        """Return the order of the run that the properties describe."""
        action, limits = props[self.ACTION], props[self.LIMITS]
        if action in actions.LIFECYCLE:
            raise errors.Invalid(f'only Heat runs {action}')
        allowed = [n for n in run_records.LIMIT_NAMES if n != self.CUT_OFF]
        for name in limits:
            if name not in allowed:
                raise errors.Invalid(
                    f'"limits" has no key {bounds.shortened(str(name))}'
                    + bounds.did_you_mean(str(name), allowed)
                )
        try:
            run_records.RunLimits.asked(limits)
        except errors.Refused as exc:
            raise errors.Invalid(f'"limits": {exc}') from exc
        tag = props[self.STACK_TAG]
        return ordering.Start(
            run=run_id,
            action=action,
            stacks=() if tag else (self.stack.root_stack_id(),),
            tags=(tag,) if tag else (),
            resources=tuple(props[self.TARGETS]),
            inputs=props[self.INPUT_VALUES],
            limits=limits,
        )

    def ordered(self, run_id: str) -> ordering.Start:
        """Return the stored order that each tick of the schedule runs.

        :raises errors.Invalid: it is invalid.
        """
        with self.frozen_properties() as props:
            return self._order(props, run_id)

    # What is done

    def _add_event(self, action: str, status: str, reason: object) -> None:
        """Write an event without the properties: some are secrets."""
        kept = self._rsrc_prop_data_id, self._stored_properties_data
        self._rsrc_prop_data_id = self._stored_properties_data = None
        try:
            super()._add_event(action, status, reason)
        finally:
            self._rsrc_prop_data_id, self._stored_properties_data = kept

    @rows.unquoted()
    def handle_create(self) -> None:
        """Store the schedule, and let the engine keep it."""
        self.resource_id_set(self.uuid)
        now = _now()
        kept = _Kept(
            schedule=self._schedule(self.properties),
            record=schedule_deciding.ScheduleRecord(
                since=now, checked=now - _UNTIL_CHECK
            ),
            rules=self._rules(self.properties),
        )
        self.data_set(schedule_rows.KEY, kept.text())
        self._tell_of_no_time(kept.schedule)
        schedule_rows.wake(self.id)

    def handle_adopt(self, resource_data: object = None) -> None:
        """Create the schedule again: records of another cloud do not apply."""
        self.handle_create()

    def handle_update(
        self,
        json_snippet: heat_types.Definition,
        tmpl_diff: heat_types.Definition,
        prop_diff: abc.Mapping[str, object],
    ) -> None:
        """Store the changed schedule; times that were missed stay counted."""
        after = json_snippet.properties(self.properties_schema, self.context)
        schedule, rules = self._schedule(after), self._rules(after)
        if not self._is_readable():
            self.handle_create()
        missed: list[int] = []

        def change(kept: _Kept) -> _Kept:
            changed = kept.with_schedule(schedule, _now())
            missed.append(changed.record.missed - kept.record.missed)
            book = changed.book
            if self.NOTIFY in prop_diff:
                book = book.redirected(rules)
            return dataclasses.replace(changed, rules=rules, book=book)

        self._change(change)
        if missed and missed[-1]:
            self._add_event(
                self.action,
                self.status,
                f'The former schedule has missed {missed[-1]} of its times',
            )
        self._tell_of_no_time(schedule)

    def _tell_of_no_time(self, schedule: schedules.Schedule) -> None:
        """Write an event if all times of a schedule have passed."""
        if not schedule.next(1, _now() - schedule.delay):
            self._add_event(
                self.action,
                self.status,
                'No time of the schedule is left: see "at" and "until"',
            )

    def _is_readable(self) -> bool:
        """Say whether there is a record; an invalid one is none.

        :raises ValueError: a later release has written it.
        """
        text = schedule_rows.read(self.context, self.id)
        try:
            return text is not None and bool(_Kept.read(text))
        except stored.LaterVersion:
            raise
        except ValueError:
            return False

    def needs_replace_failed(self) -> bool:
        """Say whether an update replaces a schedule that has failed.

        One with a record of its starts stays, as a replacement has none.
        """
        return schedule_rows.read(self.context, self.id) is None

    def handle_resume(self) -> None:
        """Skip the ticks that were due while the stack was suspended."""
        self._change(lambda kept: kept.resumed_stack(_now()))

    def restore_prev_rsrc(self, convergence: bool = False) -> None:
        """Skip the ticks that were due while a replacement served it."""
        if self._is_readable():
            self.handle_resume()

    def handle_delete(self) -> None:
        """End the schedule; a run in progress continues."""
        self.data_delete(schedule_rows.KEY)

    @rows.unquoted()
    def _change(self, changed: abc.Callable[[_Kept], _Kept]) -> bool:
        """Change the schedule's record in the database."""
        is_changed = schedule_rows.change(self.context, self.id, changed)
        schedule_rows.wake(self.id)
        return is_changed

    @rows.unquoted()
    def handle_signal(self, details: object = None) -> str:
        """Pause or resume the schedule, or run its action.

        For now, or for times of the past.
        """
        try:
            wanted = schedule_signals.read(details)
            callers.check_may_update(callers.of(self.stack))
            if not self._change(
                lambda kept: wanted.follow(self._settled(kept), _now())
            ):
                raise errors.NotFound(
                    'the schedule was never created: update the stack'
                )
        except (errors.Error, ValueError) as exc:
            raise bases.refused(self, exc) from exc
        return wanted.done

    def _settled(self, kept: _Kept) -> _Kept:
        """Return it with the end of its run, if none has recorded that."""
        head = None
        if kept.record.created:
            run_id = schedules.run_id(self.uuid, kept.record.running or 0)
            # What does not tell, or not yet, decides nothing.
            with contextlib.suppress(errors.Error):
                head = run_room.room().head(self.stack.tenant_id, run_id)
        return kept.settled(head, _now()) if head else kept

    # What is shown

    def _resolve_attribute(self, name: str) -> object:
        return (self._show_resource() or {}).get(name)

    @rows.unquoted()
    def _show_resource(self) -> dict[str, Any] | None:
        """Return all attributes, for the attribute "show"."""
        text = schedule_rows.read(self.context, self.id)
        if text is None:
            return None
        try:
            kept = self._settled(_Kept.read(text))
        except ValueError as exc:
            return {self.REASON: f'Its record is unreadable: {exc}'}
        record = kept.record
        schedule = kept.schedule
        is_off = {self.action, self.stack.action} & {self.SUSPEND, self.DELETE}
        why_paused = kept.why_paused or (
            'its stack is suspended or being deleted' if is_off else ''
        )
        # What a jitter delays has yet to start.
        since = max(record.since, _now() - schedule.delay)
        ticks = [] if why_paused else schedule.next(_UPCOMING, since)
        shown: dict[str, Any] = {
            'when': schedule.cron or schedule.at,
            self.TIMEZONE: schedule.timezone,
            'times': schedule.times,
            'signals': record.signals,
            self.BACKFILL: len(record.backfill),
            self.MISSED: record.missed,
            self.SKIPPED: record.skipped,
            self.REASON: record.reason,
            self.PAUSED_ATTR: why_paused,
            self.NEXT_TIMES: [str(summary.time(t.start)) for t in ticks],
            self.LAST_TIME: None,
            self.LAST_RUN: None,
            self.LAST_OUTCOME: record.outcome,
            self.NOTIFY: kept.rules.to if kept.rules else '',
            self.NOTIFY_ERROR: kept.book.error,
        }
        last = record.last if record.running is None else record.running
        if last is not None:
            shown[self.LAST_TIME] = summary.time(last)
            shown[self.LAST_RUN] = schedules.run_id(self.uuid, last)
        shown[self.LAST_OPERATION] = shown[self.LAST_RUN]
        if record.running is not None:
            is_running = record.created
            shown[self.LAST_OUTCOME] = 'running' if is_running else 'starting'
        return shown


def _receiver(given: object) -> dict[str, str]:
    """Return the URL and the secret of a property.

    :raises errors.Invalid: it is invalid; the message quotes nothing.
    """
    if isinstance(given, abc.Mapping):
        url, secret = given['url'], given['secret']
        if isinstance(url, str) and isinstance(secret, str):
            return {'url': url, 'secret': secret}
    raise errors.Invalid(
        '"notify" must be a map with the texts "url" and "secret", and '
        'perhaps "events", "after" and "waits"'
    )


def _now() -> int:
    """Return the time in whole seconds, as a schedule counts it."""
    return int(time.time())
