# SPDX-License-Identifier: Apache-2.0
"""What a plan from the field costs: ``python -m tests.bench.plans``.

It makes a plan of some 1,500 files on a mini cloud of its own, reads its
parameters, which asks Heat, and reads them again, which does not; and prints
the requests to the object store and the seconds of each.
"""

from collections.abc import Callable
import json
import time
from typing import Any

from keystoneauth1 import session as ks_session
from keystoneauth1.identity import v3

from heat_plugins.clients import heat_plans
from heat_plugins.clients import mistral_plans
from heat_plugins.clients import rest
from heat_plugins.clients import swift
from heat_plugins.plans import plan_operations
from heat_plugins.plans import plan_service
from heat_plugins.plans.parameters import parameters
from heat_plugins.plans.parameters import settings
from tests import sample_plan
from tests.functional import base

_CLOUD = 'bench-plans'


class Bench:
    """Measures, on a cloud."""

    def __init__(self, cloud: base.minicloud_client.Cloud) -> None:
        self._cloud = cloud
        env = cloud.env()
        session = ks_session.Session(
            auth=v3.Password(
                auth_url=env['OS_AUTH_URL'],
                username=env['OS_USERNAME'],
                password=env['OS_PASSWORD'],
                project_name=env['OS_PROJECT_NAME'],
                user_domain_id='default',
                project_domain_id='default',
            )
        )
        reached = rest.Cloud(session)
        self.plans = plan_service.Plans(
            swift.connect(reached),
            mistral_plans.MistralRegistry(reached),
            heat_plans.PlanStacks(reached),
        )
        self.rows: list[dict[str, Any]] = []

    def measure(self, what: str, act: Callable[[], Any]) -> Any:
        begun, at = time.monotonic(), time.time()
        found = act()
        seconds = time.monotonic() - begun
        # The log is written a moment after the answer.
        time.sleep(1)
        requests = self._cloud.swift_requests(since=at)
        self.rows.append(
            {
                'what': what,
                'seconds': round(seconds, 2),
                'swift_requests': len(requests),
            }
        )
        return found

    def run(self) -> None:
        content = sample_plan.content()
        self.measure(
            f'create {len(content)} files',
            lambda: self.plans.create('bench', content, render=True),
        )

        def show() -> settings.Shown:
            return settings.show(self.plans, self.plans.load('bench'))

        shown = self.measure('parameters', show)
        count = len(parameters.effective(shown.root))
        self.measure(f'the same {count} again', show)
        core = plan_operations.PlanOperations(self.plans)
        self.measure('show', lambda: core.show('bench'))
        self.measure('capabilities', lambda: core.get_capabilities('bench'))
        self.measure('delete', lambda: self.plans.delete('bench'))


def main() -> None:
    cloud = base.minicloud_client.Cloud(_CLOUD)
    cloud.down(purge=True)
    try:
        cloud.up()
        bench = Bench(cloud)
        bench.run()
        for row in bench.rows:
            print(json.dumps(row))
    finally:
        cloud.down(purge=True)


if __name__ == '__main__':
    main()
