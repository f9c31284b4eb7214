# SPDX-License-Identifier: Apache-2.0
"""The workflow that announces news, and what begins it."""

import json
import time
from typing import Any

import minicloud_client

from demo_lib import errors
from demo_lib import screen
from demo_lib import shell
from demo_lib import stack

_WORKFLOW = 'contrib/examples/workflow.yaml'

_BY_HAND = {'input': {'page': 'the page'}}
_BY_WEBHOOK = {'input': {'page': 'the page', 'channel': 'radio'}}

# What the workflow returns then, and what it does by the clock.
_HAND_SENT = 'News on the page by mail'
_WEBHOOK_SENT = 'News on the page by radio'
_CLOCK_SENT = 'News on all pages by mail'
_BEGUN_BY = {
    _HAND_SENT: 'hand',
    _WEBHOOK_SENT: 'webhook',
    _CLOCK_SENT: 'the clock',
}


class News:
    """The stack of the workflow."""

    def __init__(
        self,
        cloud: minicloud_client.Cloud,
        shown: screen.Screen,
        typed: shell.Shell,
    ) -> None:
        self._cloud = cloud
        self._screen = shown
        self._shell = typed
        self._stack: stack.Stack

    def schedule(self) -> None:
        self._shell.run(
            f'openstack stack create -t {_WORKFLOW} news'
            "\n--parameter 'pattern=* * * * *' -f value -c stack_status"
        )
        self._stack = stack.Stack(self._cloud, 'news', '')
        begun = time.monotonic()
        while (status := self._stack.status) == 'CREATE_IN_PROGRESS':
            spent = time.monotonic() - begun
            if spent > 60:
                raise errors.TooSlow(f'Stack news is {status} after 60 s')
            self._screen.wait(f'the stack is {status}', spent)
            time.sleep(0.5)
        errors.require(status == 'CREATE_COMPLETE', f'Stack news is {status}')
        self._screen.say(f'Stack news is {status}. The clock will run it:')
        upcoming = self._show_output('upcoming')
        errors.require(' UTC' in upcoming, 'Mistral has no times for it')
        self._screen.say('Meanwhile there is software to deploy.')

    def run(self) -> None:
        self._shell.run(
            'openstack stack resource signal news announcement'
            f"\n--data '{json.dumps(_BY_HAND)}'"
        )
        self._post(self._stack.outputs()['webhook'], _BY_WEBHOOK)
        runs = self._wait_for_runs({_HAND_SENT, _WEBHOOK_SENT, _CLOCK_SENT})
        for run in reversed(runs):
            who = _BEGUN_BY.get(run['output']['sent'], '')
            errors.require(who, f'Unexpected execution: {run}')
            self._screen.say(
                f'Begun by {who} at {run["created_at"]} UTC: '
                f'{run["state"]}, "{run["output"]["sent"]}".'
            )
        self._screen.say('Their results are an output of the stack:')
        shown = self._show_output('sent')
        for sent in (_HAND_SENT, _WEBHOOK_SENT, _CLOCK_SENT):
            errors.require(sent in shown, f'It does not say {sent!r}')

    def _post(self, url: str, body: dict[str, Any]) -> None:
        """Show and send what curl would: no token, and a body of JSON."""
        self._screen.say('The same with plain HTTP, without a token:')
        self._screen.output(
            f'POST {url}\nContent-Type: application/json\n\n{json.dumps(body)}'
        )
        answer = minicloud_client.rest.send('POST', url, body=body)
        errors.require(answer.ok, f'The webhook answers {answer}')
        self._screen.say(f'Heat answers {answer.status}.')

    def _wait_for_runs(self, expected: set[str]) -> list[dict[str, Any]]:
        """Wait until these have been sent; the runs, the newest first."""
        begun = time.monotonic()
        while True:
            runs = self._stack.outputs()['executions'] or []
            done = [run for run in runs if run['state'] == 'SUCCESS']
            for run in runs:
                errors.require(
                    run['state'] in ('IDLE', 'RUNNING', 'SUCCESS'),
                    f'The workflow ended wrongly: {run}',
                )
            missing = expected - {run['output']['sent'] for run in done}
            if not missing:
                return done
            spent = time.monotonic() - begun
            if spent > 90:
                raise errors.TooSlow(f'After 90 s there is no {missing}')
            whom = ', '.join(sorted(_BEGUN_BY[one] for one in missing))
            self._screen.wait(f'the run by {whom} has not ended', spent)
            time.sleep(0.5)

    def _show_output(self, name: str) -> str:
        return self._shell.run(
            f'openstack stack output show news {name} -f value -c output_value'
        )
