# SPDX-License-Identifier: Apache-2.0
"""What happens to a cron trigger in Mistral, step by step.

A step may be called again and again, as Mistral fails and comes back; what
must not get lost meanwhile lies in the data of the resource: a record of
the trigger that was made, and, while one is made, a note of what is to be
made and of what was there before.
"""

import json

from heat.engine import resource as heat_resource
from oslo_log import log as logging

from heat_plugins.resources import mistral_calls
from heat_plugins.resources import trust_probe
from heat_plugins.workflows import schedule
from heat_plugins.workflows import triggers

LOG = logging.getLogger(__name__)

_RECORD = 'trigger'
_NOTE = 'trigger_note'


class _Steps:
    """What the actions have in common."""

    def __init__(self, resource, before=None):
        """Begin.

        :param before: what the trigger was made from, where no record
            says so: Heat's own class leaves none.
        """
        self._resource = resource
        self._patience = mistral_calls.Patience()
        self._before = before
        self.record = None
        self._load()

    def _load(self):
        data = self._resource.data()
        if _RECORD in data:
            self.record = triggers.read_record(data[_RECORD])
            self._before = self.record.wanted
        note = data.get(_NOTE)
        self.note = triggers.read_note(note) if note else None

    def _save(self, record):
        # It may hold secrets, as inputs do.
        text = triggers.dumps(record)
        self._resource.data_set(_RECORD, text, redact=True)
        self.record = record
        self._before = record.wanted

    def _write(self, note):
        text = triggers.dumps(note)
        self._resource.data_set(_NOTE, text, redact=True)
        self.note = note

    def _forget_note(self):
        if self.note is not None:
            self._resource.data_delete(_NOTE)
            self.note = None

    @property
    def _calls(self):
        return self._resource.client().cron_triggers

    def _ask(self, what, call, *arguments, **named):
        return self._resource.ask(
            self._patience, what, call, *arguments, **named
        )

    def _by_id(self, identifier):
        row = self._resource.look(
            self._patience,
            'cannot see the cron trigger',
            self._calls.get,
            identifier,
        )
        return None if row is None else triggers.Trigger.from_row(vars(row))

    def _by_name(self, name):
        rows = self._ask(
            'cannot see the cron triggers', self._calls.list, name=f'eq:{name}'
        )
        for row in rows:
            # Public ones of other projects are among them.
            if row.name == name and _is_ours(self._resource, row):
                return triggers.Trigger.from_row(vars(row))
        return None

    def _known(self):
        """Return the trigger that was made last, if it is still there."""
        if self.record is not None:
            return self._by_id(self.record.id) if self.record.id else None
        if self._resource.resource_id is not None:
            return self._by_name(self._resource.resource_id)
        return None

    def _recover(self):
        """Return the trigger; what a crash has taken away is put back.

        :raises MistralError: if that is refused.
        """
        note = self.note
        if note is None:
            return self._known()
        found = self._by_name(note.order.name)
        new = found and not (note.old and found.id == note.old.id)
        if new and note.order.matches(found):
            self._made(found, note.order, note.wanted)
            return found
        old = self._known()
        if old is not None or note.old is None:
            self._forget_note()
            return old
        return self._put_back()

    def _put_back(self):
        old = self.note.old
        order = old.again(schedule.now())
        found = self._by_name(order.name)
        if not found or not order.matches(found):
            found = self._post('cannot put the cron trigger back', order)
        self._made(found, order, self._before or self.note.wanted)
        return found

    def _post(self, what, order):
        row = self._ask(
            what,
            self._calls.create,
            order.name,
            order.workflow,
            workflow_input=dict(order.input),
            workflow_params=dict(order.params),
            pattern=order.pattern,
            first_time=order.first_time,
            count=order.count,
        )
        return triggers.Trigger.from_row(vars(row))

    def _made(self, trigger, order, wanted):
        """Remember a trigger that was made."""
        self._save(
            triggers.Record(
                id=trigger.id,
                wanted=wanted,
                order=order,
                made=schedule.now().isoformat(),
            )
        )
        self._resource.resource_id_set(trigger.name)
        self._forget_note()

    def has_run_out(self):
        """Say whether a trigger that is not there has had all its runs."""
        if self.note is not None:
            return False
        now = schedule.now()
        if self.record is not None:
            return self.record.has_run_out(now)
        made = self._resource.updated_time or self._resource.created_time
        before = self._before
        if before is None or made is None:
            return False
        try:
            return schedule.has_run_out(
                before.pattern,
                before.first(),
                before.count,
                made.replace(tzinfo=None),
                now,
            )
        except schedule.ScheduleError:
            return False


class Change(_Steps):
    """Makes a trigger, or makes it again."""

    def __init__(
        self, resource, wanted, before=None, anew=False, defaults=None
    ):
        """Begin.

        :param wanted: what the template says now.
        :param defaults: input that is not given, as far as the workflow
            takes it.
        :param anew: make it again even if nothing has changed.
        """
        super().__init__(resource, before)
        self._wanted = wanted
        self._anew = anew
        self._defaults = defaults or {}
        self._stage = self._begin
        self._error = None

    def step(self):
        """Go on; return whether all is done."""
        while self._stage is not None:
            self._stage = self._stage()
        return True

    def give_up(self):
        """Put back what was there; no more than one try."""
        if self.note is None or self.note.old is None:
            return
        if self._stage in (self._make, self._restore):
            self._patience = mistral_calls.Impatience()
            self._recover()

    def _begin(self):
        lost = None
        try:
            live = self._recover()
        except mistral_calls.MistralError as exc:
            if exc.fault is None or exc.fault.passing or not self.note:
                raise
            # What was there cannot be any more: this update is the cure.
            live, lost = None, self.note.old
        plan = triggers.plan(
            self._wanted,
            self._before,
            live,
            schedule.now(),
            lost=lost,
            ran_out=live is None and self.has_run_out(),
            anew=self._anew,
        )
        if isinstance(plan, triggers.Wait):
            raise heat_resource.PollDelay(plan.seconds)
        if isinstance(plan, triggers.Order):
            return self._prepare(plan, live, lost)
        if live is not None:
            if self.record is None:
                self._made(live, _order(self._wanted, live), self._wanted)
            return None
        self._remember_end()
        return None

    def _remember_end(self):
        record = self.record
        self._save(
            triggers.Record(
                id=record.id if record else '',
                wanted=self._wanted,
                order=record.order if record else _order(self._wanted),
                made=record.made if record else _since(self._resource),
            )
        )
        self._tell('all runs have been; nothing is made')

    def _prepare(self, order, live, lost):
        """Check all that can be, while the old trigger is still there."""
        workflow = self._resource.look(
            self._patience,
            'cannot see the workflow',
            self._resource.client().workflows.get,
            order.workflow,
        )
        if workflow is None:
            raise triggers.Refused(f'there is no workflow "{order.workflow}".')
        declared = _declared(workflow)
        order = order.filled(declared, self._defaults)
        triggers.check_input(order.workflow, declared, order.input)
        ours = live is not None and live.name == order.name
        if not ours and self._by_name(order.name) is not None:
            raise triggers.Refused(_taken(order.name))
        if live is not None:
            refused = trust_probe.refusal(self._resource)
            if refused:
                raise mistral_calls.MistralError(refused)
        self._write(
            triggers.Note(order=order, wanted=self._wanted, old=live or lost)
        )
        return self._make if live is None else self._remove

    def _remove(self):
        self._resource.look(
            self._patience,
            'cannot remove the old cron trigger',
            self._calls.delete,
            self.note.old.id,
        )
        return self._make

    def _make(self):
        order = self.note.order
        try:
            # A try before this one may have had no answer, and an effect.
            found = self._by_name(order.name)
            if found is None:
                found = self._post('cannot make the cron trigger', order)
            elif not order.matches(found):
                raise triggers.Refused(_taken(order.name))
        except (mistral_calls.MistralError, triggers.Refused) as exc:
            self._error = exc
            return self._restore
        self._made(found, order, self._wanted)
        first = order.first_time
        self._tell(
            schedule.show_upcoming(
                order.pattern,
                schedule.first_time(first) if first else None,
                order.count if order.pattern else 1,
                schedule.now(),
            )
        )
        return None

    def _restore(self):
        error = self._error
        passing = bool(
            isinstance(error, mistral_calls.MistralError)
            and error.fault
            and error.fault.passing
        )
        if self.note.old is None:
            # If it is not known whether it was made, deleting looks again.
            if not passing:
                self._forget_note()
            raise error
        if passing:
            # It has been waited for long enough.
            self._patience = mistral_calls.Impatience()
        try:
            self._put_back()
        except mistral_calls.MistralError as exc:
            raise mistral_calls.MistralError(
                f'{error} The trigger before it is not back ({exc}); the '
                f'next update or check of this resource puts it back.',
                exc.fault,
            ) from error
        raise mistral_calls.MistralError(
            f'{error} The trigger before it is back.'
        ) from error

    def _tell(self, text):
        self._resource._add_event(
            self._resource.action,
            self._resource.status,
            f'Cron trigger: {text}'[:255],
        )


class Check(_Steps):
    """Sees to it that the trigger is there, or has had its runs."""

    def step(self):
        """Go on; return whether all is done."""
        if self._recover() is None and not self.has_run_out():
            raise mistral_calls.MistralError(
                'the cron trigger is not in Mistral any more, and its runs '
                'are not over; an update of the stack makes it again.'
            )
        return True


class Removal(_Steps):
    """Removes the trigger, and with it Mistral removes its trust."""

    def step(self):
        """Go on; return whether all is done."""
        note = self.note
        if note is not None:
            found = self._by_name(note.order.name)
            if found and note.order.matches(found):
                self._delete(found.id)
            if note.old is not None:
                self._delete(note.old.id)
        if self.record is None:
            found = self._known()
            if found is not None:
                self._delete(found.id)
        elif self.record.id:
            self._delete(self.record.id)
        self._forget_note()
        return True

    def _delete(self, identifier):
        self._resource.look(
            self._patience,
            'cannot delete the cron trigger',
            self._calls.delete,
            identifier,
        )


def look(resource, before):
    """Return the trigger and whether it ran out; None: cannot be told."""
    steps = Check(resource, before)
    steps._patience = mistral_calls.Impatience()
    try:
        return steps._known(), steps.has_run_out()
    except mistral_calls.MistralError as exc:
        LOG.warning('%s: %s', resource.name, exc)
        return None


def upcoming(trigger):
    """Return the times of a trigger's next runs, for people."""
    due = trigger.next()
    if due is None:
        return []
    wanted = 3 if trigger.remaining is None else min(trigger.remaining, 3)
    times = [due]
    if trigger.pattern:
        times += schedule.upcoming(trigger.pattern, due, 2)
    return [schedule.show(time) for time in times[:wanted]]


def _is_ours(resource, row):
    project = getattr(row, 'project_id', None)
    return project in (None, resource.context.project_id) or (
        getattr(row, 'scope', 'private') == 'private'
    )


def _declared(workflow):
    """Return the inputs that a workflow declares; None if unknown."""
    interface = getattr(workflow, 'interface', None)
    if isinstance(interface, str):
        try:
            interface = json.loads(interface)
        except ValueError:
            return None
    return interface.get('input') if isinstance(interface, dict) else None


def _order(wanted, live=None):
    """Return the order that Heat's own class may have given."""
    return triggers.Order(
        name=wanted.name,
        workflow=wanted.workflow,
        input=wanted.input,
        params=wanted.params,
        pattern=wanted.pattern,
        first_time=wanted.first_time,
        count=live.remaining if live else wanted.count,
    )


def _since(resource):
    made = resource.created_time or schedule.now()
    return made.replace(tzinfo=None).isoformat()


def _taken(name):
    return (
        f'this project has another cron trigger "{name}" already; give this '
        f'one another name, or none.'
    )
