# SPDX-License-Identifier: Apache-2.0
"""Heat's stacks in memory; rejects what it was not told to expect."""

import dataclasses
import itertools

import yaml

from heat_plugins import errors
from heat_plugins import heat_values
from heat_plugins.plans.content import references


class Heat:
    """Stacks, as `stack_tree.StackReader` has them.

    :ivar answer: what `validate` says of a content.
    :ivar asked: what was asked for, in order.
    """

    def __init__(self):
        self.answer = answer
        self.asked = []
        self.stacks = {}
        self.contents = {}
        self.happened = {}
        self._times = itertools.count(1)

    # For tests

    def become(self, name, status, **more):
        """Let a stack have a status; make it if there is none."""
        if name not in self.stacks:
            self.stacks[name] = heat_values.Stack(
                id=f'{name}-id',
                name=name,
                status=status,
                changed_at=self._time(),
            )
            self.contents[name] = ({}, {}, {})
        self.stacks[name] = dataclasses.replace(
            self.stacks[name], status=status, **more
        )

    def happen(self, name, resource, status, **more):
        """Let something happen to a resource of a stack."""
        stack = self.stacks[name]
        found = self.happened.setdefault(name, [])
        values = {
            'id': f'event-{len(found)}',
            'physical_id': f'{resource}-id',
            'stack_id': stack.id,
            'reason': '',
            'time': 0.0,
            **more,
        }
        event = heat_values.Event(resource=resource, status=status, **values)
        found.append(event)

    # The protocol

    def find(self, name):
        self._ask('find')
        known = {stack.id: stack for stack in self.stacks.values()}
        return (self.stacks | known).get(name)

    def create(self, name, content, *, tags, timeout):
        self._ask('create', content)
        assert name not in self.stacks, 'there is one'
        self.become(name, 'CREATE_IN_PROGRESS', tags=tuple(tags))
        self.contents[name] = (None, None, dict(content.files))
        return self.stacks[name].id

    def replace(self, stack, content, *, tags, timeout):
        self._ask('replace', content)
        assert not stack.in_progress and stack.action != 'DELETE'
        self.become(
            stack.name,
            'UPDATE_IN_PROGRESS',
            tags=tuple(tags),
            changed_at=self._time(),
        )
        self.contents[stack.name] = (None, None, dict(content.files))

    def cancel(self, stack):
        self._ask('cancel')
        assert stack.status in ('CREATE_IN_PROGRESS', 'UPDATE_IN_PROGRESS')
        self.become(stack.name, f'{stack.action}_FAILED')

    def validate(self, content):
        self._ask('validate', content)
        return self.answer(content)

    def preview(self, name, content):
        self._ask('preview', content)
        assert name not in self.stacks
        template = yaml.safe_load(content.template)
        for name, one in template.get('Parameters', {}).items():
            (path,) = content.environments
            given = yaml.safe_load(content.files[path])['parameters'][name]
            largest = one.get('MaxValue')
            if given is None or (largest and float(given) > largest):
                raise errors.ServiceError(
                    f"Parameter '{name}' is invalid: {given} does not fit", 400
                )

    def preview_replace(self, stack, content):
        self._ask('preview_replace', content)
        return {'updated': ('server',), 'deleted': ('old',)}

    def content(self, stack):
        self._ask('content')
        return self.contents[stack.name]

    def events(self, stack, after, limit):
        self._ask('events')
        found = self.happened.get(stack.name, [])
        ids = [event.id for event in found]
        start = 0 if after is None else ids.index(after) + 1
        return found[start : start + limit]

    def last_event(self, stack):
        self._ask('last_event')
        found = self.happened.get(stack.name)
        return found[-1].id if found else None

    def _ask(self, what, content=None):
        assert content is None or isinstance(content, references.Resolved)
        self.asked.append(what)

    def _time(self):
        return f'2026-01-01T00:00:{next(self._times):02d}Z'


def answer(content):
    """Answer as Heat's validation does, of the root template alone."""
    merged = {'parameter_defaults': {}, 'resource_registry': {}}
    for path in content.environments:
        found = yaml.safe_load(content.files[path]) or {}
        for section, values in merged.items():
            values.update(found.get(section) or {})
    defaults = merged['parameter_defaults']
    found = {}
    template = yaml.safe_load(content.template)
    for name, one in template['parameters'].items():
        found[name] = {
            'Type': one['type'].capitalize(),
            'NoEcho': 'true' if one.get('hidden') else 'false',
            'Label': name,
            'Description': '',
            **one.get('limits', {}),
        }
        if name in defaults or 'default' in one:
            found[name]['Default'] = defaults.get(name, one.get('default'))
    return {'Parameters': found, 'Environment': merged}
