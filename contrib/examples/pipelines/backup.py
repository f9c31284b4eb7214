# SPDX-License-Identifier: Apache-2.0
"""Back up the databases of production, and name the servers that failed."""

import json
import subprocess
import sys

COMMAND = ('openstack', 'software', 'deployment', 'run')

# Complete, failed, timed out, cancelled: then there is a result.
ENDED = (0, 3, 4, 5)


def run(*arguments):
    """Return the result of a command on runs."""
    done = subprocess.run(
        [*COMMAND, *arguments, '--format', 'json'],
        stdout=subprocess.PIPE,
        text=True,
    )
    if done.returncode not in ENDED:
        # The reason is on standard error.
        sys.exit(done.returncode)
    return json.loads(done.stdout)


backup = run(
    *('start', 'BACKUP', '--stack-tag', 'production'),
    *('--max-concurrent', '10', '--max-errors', '2', '--yes', '--wait'),
)
print(f'{backup["id"]}: {backup["state"]}: {backup["reason"]}')
for failure in backup['failures']:
    print(f'{failure["server_name"]}: {failure["reason"]}')
sys.exit(backup['state'] != 'complete')
