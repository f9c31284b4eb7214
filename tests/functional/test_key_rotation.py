# SPDX-License-Identifier: Apache-2.0
"""auth_encryption_key changes while URLs are out that it has signed.

It is changed as "Keys" in doc/source/operations.rst has it.
"""

import base64
import pathlib
import re
import secrets
import sqlite3
import subprocess
import sys

from cryptography import fernet
import pytest

from tests.functional import base
from tests.functional import conftest
from tests.functional import running
from tests.functional import test_runs

HEAT_MANAGE = pathlib.Path(sys.executable).with_name('heat-manage')

#: What Heat encrypts always, and has no command to encrypt anew: the
#: credentials of stacks, and those of the users that it makes for servers.
ENCRYPTED = (
    ('user_creds', 'trust_id'),
    ('user_creds', 'password'),
    ('resource_data', 'value'),
)


def rotate(cloud):
    """Change the key, as the page has it."""
    conf = cloud.conf.read_text()
    (former,) = re.findall('auth_encryption_key = (.*)', conf)
    key = secrets.token_hex(16)
    cloud.stop('heat')
    update_params('decrypt', cloud)
    encrypt_anew(cloud, [key, former])
    cloud.conf.write_text(conf.replace(former, key))
    update_params('encrypt', cloud)
    cloud.again(plugin=base.ROOT)


def update_params(way, cloud):
    """Have Heat decrypt or encrypt what it does if an option says so."""
    subprocess.run(
        [
            *(HEAT_MANAGE, '--config-file', cloud.path / 'conf/heat.conf'),
            *('--config-file', cloud.conf, 'update_params', way),
            # Takes its value for how many to do at once; without it: none.
            '--verbose-update-params',
        ],
        check=True,
        capture_output=True,
    )


def encrypt_anew(cloud, keys):
    """Encrypt what lies in Heat's database with the first of some keys.

    To heat.common.crypt a key in base64 is one of Fernet's.
    """
    both = fernet.MultiFernet(
        [fernet.Fernet(base64.b64encode(key.encode())) for key in keys]
    )
    with sqlite3.connect(cloud.path / 'data/heat.sqlite') as database:
        for table, column in ENCRYPTED:
            rows = database.execute(
                f'SELECT {column}, id FROM {table} WHERE {column} IS NOT NULL '
                "AND decrypt_method = 'cryptography_decrypt_v1'"
            ).fetchall()
            database.executemany(
                f'UPDATE {table} SET {column} = ? WHERE id = ?',
                [(both.rotate(value).decode(), row) for value, row in rows],
            )


@pytest.mark.skipif(
    conftest.PROFILE != 'small', reason='encrypts in the database of SQLite'
)
def test_what_was_handed_out_before_a_rotation_ends_after_it(alone):
    session = alone.session()
    before = base.Leftovers.of(alone)
    stack = base.Stack(session, test_runs.template(deployments=2))
    waiting = stack.waiting('deployment0')
    stack.waiting('deployment1').answer(size='1')
    base.until(lambda: stack.deployment('deployment1').status == 'COMPLETE')
    run = running.Commands(alone)
    words = '--stack', stack.name, '--resource', 'deployment1'
    begun = run.start('BACKUP', *words)
    (config,) = base.until(lambda: running.configs(stack))

    rotate(alone)

    # The former key is good still, also when the stack has another one, too.
    changed = test_runs.template(deployments=3)
    stack.update(changed)
    third = stack.waiting('deployment2')
    headers = session.request('HEAD', 'object-store', stack.container).headers
    assert headers['X-Container-Meta-Temp-Url-Key-2']
    waiting.answer(size='3')
    third.answer(size='4')
    stack.wait('UPDATE_COMPLETE')
    assert stack.deployment('deployment0').config == waiting.config
    sizes = [stack.outputs[f'deployment{n}_size'] for n in range(3)]
    assert sizes == ['3', '1', '4']
    # What was ordered is encrypted with the former key.
    code, ended = run('wait', begun)
    assert (code, ended['state']) == (3, 'failed')
    assert 'auth_encryption_key has been changed' in str(ended)
    # The URL is good until it expires, and nobody reads what it brings.
    base.answer(config, size='2')
    assert run('delete', begun)[0] == 0

    later = base.Stack(session, base.software())
    later.waiting().answer(greeting='hello')
    later.wait('CREATE_COMPLETE')
    for one in (stack, later):
        one.purge()
    before.hold(alone)
