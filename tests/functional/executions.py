# SPDX-License-Identifier: Apache-2.0
"""Executions of a real Mistral."""

import json
import pathlib
from typing import Any

from heat_plugins.mistral_actions import preinstalled
from tests.functional import base

MISTRAL = 'workflowv2'

Template = base.Template


class Mistral:
    """Mistral, as a user of its API has it."""

    def __init__(self, session: base.minicloud_client.Session) -> None:
        self._session = session
        # Those that a crash has left, which Mistral notices in five minutes.
        self._left: set[str] = set()

    def start(self, workflow: str, namespace: str = '', **given: Any) -> str:
        self._left = {action['id'] for action in self._running()}
        answer = self._session.post(
            MISTRAL,
            '/executions',
            {
                'workflow_name': workflow,
                'workflow_namespace': namespace,
                'input': given,
            },
        )
        assert answer.ok, answer
        return str(answer.json()['id'])

    def show(self, execution: str) -> Template:
        answer = self._session.get(MISTRAL, f'/executions/{execution}')
        assert answer.ok, answer
        found = dict(answer.json())
        return {**found, 'output': json.loads(found['output'] or '{}')}

    def end(self, execution: str, seconds: float = 150) -> Template:
        """Wait until an execution has ended; return it."""

        def ended() -> Template | None:
            found = self.show(execution)
            going = found['state'] in ('IDLE', 'RUNNING', 'DELAYED')
            return None if going else found

        found: Template = base.until(ended, seconds)
        return found

    def run(self, workflow: str, **given: Any) -> Template:
        return self.end(self.start(workflow, **given))

    def action(self, action: str, **given: Any) -> Any:
        """Run an action by itself; return its result."""
        answer = self._session.post(
            MISTRAL,
            '/action_executions',
            {
                'name': action,
                'input': json.dumps(given),
                'params': json.dumps({'save_result': True}),
            },
        )
        assert answer.ok, answer
        place = f'/action_executions/{answer.json()["id"]}'

        def ended() -> Template | None:
            found = self._session.get(MISTRAL, place).json()
            return None if found['state'] == 'RUNNING' else dict(found)

        return json.loads(base.until(ended)['output'])['result']

    def hasten(self, *names: str, seconds: int) -> str:
        """Publish workflows of ours with a short time limit for their steps.

        :return: the namespace that they are in.
        """
        for path in preinstalled.paths():
            file = pathlib.Path(path)
            if file.stem in names:
                text = file.read_text()
                text = text.replace('+ 240', f'+ {seconds}')
                answer = self._session.post(
                    MISTRAL,
                    '/workflows?namespace=hastened',
                    text.encode(),
                    headers={'Content-Type': 'text/plain'},
                )
                assert answer.ok or answer.status == 409, answer
        return 'hastened'

    def acts(self, action: str, phase: str = '') -> None:
        """Wait until an executor runs an action, in a phase of its job."""
        base.until(
            lambda: any(
                phase in str(running['input'])
                for running in self._running(f'&name={action}')
                if running['id'] not in self._left
            ),
            pause=0.2,
        )

    def _running(self, query: str = '') -> list[Template]:
        """Return the actions that executors run, or ran as they died."""
        place = f'/action_executions?state=RUNNING{query}'
        answer = self._session.get(MISTRAL, place)
        return list(answer.json()['action_executions'])

    def stop(self, execution: str) -> None:
        answer = self._session.put(
            MISTRAL, f'/executions/{execution}', {'state': 'CANCELLED'}
        )
        assert answer.ok, answer

    def names(self, kind: str) -> set[str]:
        answer = self._session.get(MISTRAL, f'/{kind}')
        return {one['name'] for one in answer.json()[kind]}
