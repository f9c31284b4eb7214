# SPDX-License-Identifier: Apache-2.0
"""Mistral's environments in memory, and plans for tests."""

import dataclasses
import json
import threading

import testtools

from heat_plugins import errors
from heat_plugins import pools
from heat_plugins.plans import plan_service
from tests.unit import fake_swift
from tests.unit.plans import fake_heat

TEMPLATE = b"""\
heat_template_version: 2021-04-16
parameters:
  who: {type: string, default: world}
  secret: {type: string, hidden: true}
resources:
  node:
    type: nodes/node.yaml
"""

NODE = b"""\
heat_template_version: 2021-04-16
resources:
  config:
    type: OS::Heat::SoftwareConfig
    properties:
      config: {get_file: ../scripts/run.sh}
"""

MAP = b"""\
topics:
  - title: Basics
    environment_groups:
      - title: Base
        environments:
          - {file: base.yaml, title: Base}
      - title: Size
        mutually_exclusive: true
        environments:
          - file: environments/small.yaml
            title: Small
            requires: [base.yaml]
          - file: environments/large.yaml
            title: Large
            requires: [base.yaml]
      - title: Extras
        environments:
          - file: environments/backup.yaml
            title: Backup
            requires: [environments/large.yaml]
          - {file: environments/lost.yaml, title: Lost}
"""


def environment(**values):
    return json.dumps({'parameter_defaults': values}).encode()


def content(**more):
    """Return a plan's files; those in `more` go over, None takes away."""
    files = {
        'plan-environment.yaml': (
            b'version: 1.0\n'
            b'name: other\n'
            b'description: A test\n'
            b'template: root.yaml\n'
            b'environments: [{path: base.yaml}]\n'
        ),
        'capabilities-map.yaml': MAP,
        'root.yaml': TEMPLATE,
        'base.yaml': environment(who='you'),
        'nodes/node.yaml': NODE,
        'scripts/run.sh': b'#!/bin/sh\n',
        'environments/small.yaml': environment(size=1),
        'environments/large.yaml': environment(size=9),
        'environments/backup.yaml': environment(backup=True),
        **more,
    }
    return {path: data for path, data in files.items() if data is not None}


class Registry:
    """A registry as Mistral is one; each test may change its ``records``.

    :ivar failing: method name to what it raises after it has done its work.
    :ivar before: called with the method and the name before anything is done.
    """

    def __init__(self):
        self.records = {}
        self.failing = {}
        self.before = lambda method, name: None
        self.asked = []
        self._lock = threading.Lock()

    def create(self, record):
        self._ask('create', record.name)
        # So long Mistral's column is.
        assert 0 < len(record.name) <= 200
        assert json.loads(json.dumps(record.values)) == record.values
        with self._lock:
            taken = record.name in self.records
            self.records.setdefault(record.name, record)
        self._fail('create')
        return not taken

    def get(self, name):
        self._ask('get', name)
        self._fail('get')
        return self.records.get(name)

    def find(self):
        self._ask('find')
        self._fail('find')
        return [self.records[name] for name in sorted(self.records)]

    def delete(self, name):
        self._ask('delete', name)
        self._fail('delete')
        return self.records.pop(name, None) is not None

    def _ask(self, method, name=''):
        self.before(method, name)
        self.asked.append(f'{method} {name}'.rstrip())

    def _fail(self, method):
        if method in self.failing:
            raise self.failing[method]


def change(service, **values):
    """Change sections of the environment of `plan`, as a command does."""
    with service.lock('plan') as plan:
        environment = dataclasses.replace(plan.environment, **values)
        return service.write(plan, environment)


class Cloud:
    def __init__(self, **options):
        self.swift = fake_swift.Cluster(**options)
        self.registry = Registry()
        self.heat = fake_heat.Heat()
        self.now = 1_800_000_000.0
        self.slept = []
        #: Called by whoever waits for a lock.
        self.while_waiting = lambda: None
        self.plans = self.service()

    def service(self):
        """Return the plans as somebody else would have them."""
        return plan_service.Plans(
            self.swift.store(),
            self.registry,
            self.heat,
            pool=pools.Pool(wait=0),
            clock=lambda: self.now,
            sleep=self._sleep,
        )

    def objects(self, name='plan'):
        """Return what is in a container; None if there is none."""
        found = self.swift.container(name)
        return None if found is None else found.objects

    def write_past_checks(self, path, body, name='plan'):
        """Write a file of a plan that an earlier release accepted."""
        self.swift.store().put_object(name, path, body)

    def uploads(self):
        """Return the paths that were written so far, in order."""
        return [
            one.partition('/')[2].partition('/')[2]
            for one in self.swift.asked()
            if one.startswith('PUT /') and one.count('/') > 1
        ]

    def _sleep(self, seconds):
        self.while_waiting()
        self.slept.append(seconds)
        self.now += seconds


class PlanCase(testtools.TestCase):
    """A test with a plan `plan`, on a cloud whose Heat takes it.

    :cvar FILES: see `content`.
    """

    FILES = {}

    def setUp(self):
        super().setUp()
        self.cloud = Cloud()
        self.heat = self.cloud.heat
        self.plans = self.cloud.plans
        self.plan = self.plans.create('plan', content(**self.FILES))

    def refused(self, call, *arguments, kind=errors.Invalid, **options):
        return str(self.assertRaises(kind, call, *arguments, **options))

    def change(self, **values):
        return change(self.plans, **values)
