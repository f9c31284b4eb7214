# SPDX-License-Identifier: Apache-2.0
"""A server's disk: what its agent has run, by the agent's own records."""

import dataclasses
import json
import pathlib


@dataclasses.dataclass(frozen=True, kw_only=True)
class Run:
    """A config that an agent has run.

    :ivar signal: the object that its result is sent to.
    :ivar name: of the config.
    :ivar action: that it was run for.
    :ivar result: what the agent has sent back.
    """

    signal: str
    name: str
    action: str
    result: dict[str, object]

    def __str__(self) -> str:
        text = (
            f'The agent has run {self.name} for {self.action}: exit status '
            f'{self.result.get("deploy_status_code")}'
        )
        for stream in ('deploy_stdout', 'deploy_stderr'):
            said = str(self.result.get(stream, '')).strip()
            if said:
                *before, last = said.splitlines()
                said = f'… {last}' if before else last
                text += f', {stream.removeprefix("deploy_")} "{said}"'
        return text


def runs(disk: pathlib.Path) -> dict[str, Run]:
    """Return what has been run on a server, by signal.

    The agent writes down each config before it runs it, and next to it what
    it is about to send back.
    """
    found = {}
    for path in sorted((disk / 'var/deployed').glob('*.notify.json')):
        config_id = path.name.removesuffix('.notify.json')
        config = json.loads(path.with_name(f'{config_id}.json').read_text())
        try:
            result = json.loads(path.read_text())
        except ValueError:
            # It is just being written.
            continue
        inputs = {one['name']: one['value'] for one in config['inputs']}
        url = inputs['deploy_signal_id'].partition('?')[0]
        signal = url.partition('/signals/')[2]
        found[signal] = Run(
            signal=signal,
            name=config['name'],
            action=inputs['deploy_action'],
            result=result,
        )
    return found
