# SPDX-License-Identifier: Apache-2.0
"""A stack with a deployment, its object store, and a clock to turn."""

import json

import testtools

from heat_plugins import pools
from heat_plugins.objectstore import exclusive
from heat_plugins.objectstore import keys
from heat_plugins.runs import run_service
from heat_plugins.runs import services
from heat_plugins.runs.fleet import fleets
from heat_plugins.runs.fleet.records import operation_records
from heat_plugins.runs.records import record_names
from heat_plugins.runs.records import records
from heat_plugins.runs.start import orders
from tests.unit import fake_swift
from tests.unit.runs import fake_heat


def values(config):
    """Return the inputs of a config by their names."""
    return {one['name']: one['value'] for one in config.inputs}


class RunsTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        keys.KeyKeeper.forget_abilities()
        self.addCleanup(keys.KeyKeeper.forget_abilities)
        self.now = 1_800_000_000.0
        self.cluster = fake_swift.Cluster(clock=lambda: 0)
        # Its clock is wrong, which must not matter.
        self.cluster.now = lambda: self.now - 500_000
        self.heat = fake_heat.Heat()
        self.stack = self.heat.add_stack('shop')
        self.row = self.heat.add_deployment(self.stack)
        self.runs = self.service()
        self.records = records.Records(self.cluster.store(), self.stack.id)

    def service(self, who='ann', **more):
        return run_service.Runs(
            self.heat,
            self.cluster.store(),
            who=who,
            clock=lambda: self.now,
            monotonic=lambda: self.now,
            sleep=self.sleep,
            **more,
        )

    def fleets(self):
        store = self.cluster.store()
        return fleets.Fleets(
            self.heat,
            services.Services(
                heat=self.heat,
                records=operation_records.OperationRecords(
                    store, pools.Pool(workers=1, wait=0)
                ),
                sign=keys.KeyKeeper(
                    store, secret=None, digests=('sha256',), overlap=None
                ).ensure,
                who='ann',
                clock=lambda: self.now,
                monotonic=lambda: self.now,
                sleep=lambda seconds: self.sleep(seconds),
            ),
        )

    def sleep(self, seconds):
        self.now += seconds

    def start(self, action='BACKUP', runs=None, resource='db', **order):
        (target,) = self.runs.find('shop', resource)
        order = orders.RunOrder(action=action, **order)
        return (runs or self.runs).start(target, order)

    def inputs(self, server='server-1'):
        """Return the inputs of the one config that a server is given."""
        (config,) = self.heat.given(server)
        return values(config)

    def answer(self, **outputs):
        """Signal as the server would."""
        url = self.inputs()['deploy_signal_id']
        return self.put(url, {'deploy_status_code': 0, **outputs})

    def put(self, url, body):
        return self.cluster.put_signed(url, json.dumps(body).encode())

    def record(self, run):
        """Return the record of a run, as it is kept."""
        return self.cluster.store().get_object(
            self.records.container, record_names.record_name(run.key), 65536
        )

    def announce(self, key):
        """Announce a run as who starts it does."""
        exclusive.announce(
            self.records.store,
            self.records.container,
            record_names.open_name(key),
        )

    def garble(self, run, content=b'[]'):
        """Let somebody write over the record of a run."""
        self.records.store.put_object(
            self.records.container, record_names.record_name(run.key), content
        )

    def objects(self, prefix=''):
        container = self.cluster.container(self.records.container)
        if container is None:
            return []
        return sorted(n for n in container.objects if n.startswith(prefix))

    def show(self, run):
        return self.runs.show('shop', run.id)
