# SPDX-License-Identifier: Apache-2.0
"""A stack, looked at through Heat's API: what waits for what in it."""

import time
from typing import Any

import minicloud_client

from demo_lib import errors

_DEPLOYMENT = 'OS::Heat::SoftwareDeployment'


class Stack:
    """A stack of the user ``demo``.

    :param server: the resource that runs the software.
    """

    def __init__(
        self, cloud: minicloud_client.Cloud, name: str, server: str
    ) -> None:
        self._session = cloud.session('demo')
        self._server = server
        # By id, so that it can still be looked at when it is deleted.
        found = self._get(f'/stacks/{name}').json()['stack']
        self.name, self.id = name, str(found['id'])
        self._path = f'/stacks/{name}/{self.id}'

    def _get(self, path: str) -> minicloud_client.Answer:
        answer = self._session.get('orchestration', path)
        errors.require(answer.ok, f'Heat answers {answer} to GET {path}')
        return answer

    @property
    def status(self) -> str:
        return str(self._get(self._path).json()['stack']['stack_status'])

    def until(self, action: str, patience: float) -> float:
        """Wait until it has completed an action; return the seconds.

        :raises errors.Surprise: the action fails, or takes too long.
        """
        begun = time.monotonic()
        while (status := self.status).endswith('IN_PROGRESS') or (
            not status.startswith(action)
        ):
            if time.monotonic() > begun + patience:
                raise errors.TooSlow(f'{self.name} is {status}')
            time.sleep(0.5)
        errors.require(
            status == f'{action}_COMPLETE', f'{self.name} has become {status}'
        )
        return time.monotonic() - begun

    def outputs(self) -> dict[str, Any]:
        shown = self._get(self._path).json()['stack']['outputs']
        return {one['output_key']: one.get('output_value') for one in shown}

    def resources(self) -> dict[str, dict[str, Any]]:
        found = self._get(f'{self._path}/resources').json()['resources']
        return {one['resource_name']: one for one in found}

    def deployments(self) -> dict[str, dict[str, Any]]:
        return {
            name: one
            for name, one in self.resources().items()
            if one['resource_type'] == _DEPLOYMENT
        }

    def waits(self) -> list[str]:
        """Say who waits for what, as far as deployments are concerned."""
        every = self.resources()
        found = []
        for name, one in every.items():
            if one['resource_type'] != _DEPLOYMENT:
                continue
            if one['resource_status'].endswith('_IN_PROGRESS'):
                action = one['resource_status'].removesuffix('_IN_PROGRESS')
                found.append(
                    f'{name} waits for {self._server} to run {action}'
                )
            elif one['resource_status'] == 'INIT_COMPLETE':
                found += [
                    f'{name} waits for {other}'
                    for other, needed in every.items()
                    if name in needed['required_by']
                    and needed['resource_type'] == _DEPLOYMENT
                ]
        return sorted(found, reverse=True)
