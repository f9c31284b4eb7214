# SPDX-License-Identifier: Apache-2.0
"""What the bytes that a server sends mean."""

import json

import pytest

from heat_plugins import errors
from heat_plugins.signals import body

ERROR = {'name': 'broken', 'error_output': True}


def nested(levels):
    return b'{"a": ' + b'[' * levels + b']' * levels + b'}'


def outcome(details, *declared, **more):
    return body.outcome(details, [*declared], **more)


def assert_complete(found):
    assert (found.status, found.reason) == ('COMPLETE', 'Outputs received')


def assert_failed(reason, found):
    assert (found.status, found.reason) == ('FAILED', reason)


def test_a_map_is_read_as_it_was_sent():
    details = {'a': [1, 2.5, None, True], 'ü': {'b': 'x\0y'}}
    for text in (json.dumps(details), json.dumps(details, indent=1)):
        assert body.parse(text.encode()) == details
    assert body.parse('{"ü": 1}'.encode()) == {'ü': 1}
    assert body.parse(b'{"a": 1, "a": 2}') == {'a': 2}
    assert body.parse(rb'{"a": "\ud83d\ude00"}') == {'a': '😀'}
    assert body.parse(nested(60)) is not None
    # A signal without outputs.
    for content in (b'', b' \r\n', b'null', b'{}'):
        assert body.parse(content) == {}


def test_what_is_no_map_of_json_is_refused_with_the_reason():
    for content, reason in (
        (b'<hunter2>', 'it is not JSON'),
        (b'{"a": 1', 'it is not JSON'),
        (b"{'hunter2': 1}", 'it is not JSON'),
        (b'{} {}', 'it is not JSON'),
        # Only Python takes it, or no longer converts it.
        (b'{"a": NaN}', 'an infinite number or NaN'),
        (b'{"a": [-Infinity]}', 'an infinite number or NaN'),
        (b'{"a": %s}' % (b'9' * 5000), 'it is not JSON'),
        (b'{"a": "\xff"}', 'it is not UTF-8'),
        (b'["hunter2"]', 'it is a list, but must be a map'),
        (b'"hunter2"', 'it is a string, but must be a map'),
        (b'5', 'it is a number, but must be a map'),
        (b'0.5', 'it is a number, but must be a map'),
        (b'false', 'it is a boolean, but must be a map'),
        (b'{"a": [{"b": -1e999}]}', 'an infinite number'),
        (rb'{"a": ["\ud83d"]}', 'an incomplete character'),
        (rb'{"\udc00": 1}', 'an incomplete character'),
        # Long before Python gives up.
        (nested(70), 'levels deep'),
        (b'{"a":' * 300 + b'1' + b'}' * 300, 'levels deep'),
        (nested(400000), 'levels deep'),
    ):
        with pytest.raises(errors.BadSignal, match=reason) as raised:
            body.parse(content)
        assert len(str(raised.value)) < 80
        assert 'hunter2' not in str(raised.value)


def test_details_that_came_as_values_are_held_to_the_same():
    assert body.as_map(None) == {}
    assert body.as_map({'a': 1}) == {'a': 1}
    bad = (float('nan'), '\ud800', 10**5000, object())
    for details in (*({'a': each} for each in bad), []):
        with pytest.raises(errors.BadSignal):
            body.as_map(details)


def test_declared_and_standard_outputs_are_kept_and_no_others():
    details = {
        'deploy_stdout': 'out',
        'deploy_stderr': 'deprecated',
        'deploy_status_code': 0,
        'result': [1],
    }
    found = outcome(
        {**details, 'undeclared': 'x'}, {'name': 'result'}, {'name': 'absent'}
    )
    assert_complete(found)
    assert found.outputs == details
    found = outcome({}, {'name': 'result'})
    assert_complete(found)
    assert found.outputs == dict.fromkeys(body.STANDARD_OUTPUTS)


def test_each_form_of_zero_is_success():
    for code in (0, 0.0, '0', '', '00', ' 0\n', '-0', '0.0', None, False):
        found = outcome({'deploy_status_code': code})
        assert_complete(found)
        assert found.outputs['deploy_status_code'] == code


@pytest.mark.parametrize(
    ('code', 'text'),
    [(1, '1'), (-9, '-9'), (2.0, '2'), (' 127\n', '127'), ('+3', '3')],
)
def test_another_status_fails_and_is_named(code, text):
    found = outcome({'deploy_status_code': code})
    assert_failed(f'the exit status (deploy_status_code) is {text}', found)


@pytest.mark.parametrize(
    ('stderr', 'told'),
    [
        ('one\ntwo: no such file\n \n', ': two: no such file'),
        ('  x\x1b[31m\r\n', ': x\\x1b[31m'),
        ('x' * 999, f': {"x" * 119}…'),
        ('😀', ': \\U0001f600'),
        (' \n', ''),
        (None, ''),
        (['x'], ''),
    ],
    ids=str,
)
def test_the_last_line_of_stderr_says_why(stderr, told):
    found = outcome({'deploy_status_code': 1, 'deploy_stderr': stderr})
    assert_failed(f'the exit status (deploy_status_code) is 1{told}', found)


def test_secrets_in_stderr_are_masked_before_it_is_cut():
    for stderr in (
        'x' * 110 + ' hunter2hunter2',
        'PUT https://s/c/o?temp_url_sig=hunter2hunter2&temp_url_expires=9',
    ):
        details = {'deploy_status_code': 1, 'deploy_stderr': stderr}
        found = outcome(details, secrets=['hunter2hunter2'])
        assert 'hunter' not in found.reason
    # They are worked out only for a failure.
    never = (1 / 0 for _ in range(1))
    for details in ({}, {'deploy_status_code': 0, 'deploy_stderr': 'x'}):
        outcome(details, secrets=never)


def test_a_hook_that_crashed_is_told_from_what_it_ran():
    # Of heat-agents' hook-script, for a script without "#!".
    place = '  File "/usr/libexec/heat-config/hooks/script", line'
    hook = (
        '[2026-11-22 10:00:00,000] (heat-config) [INFO] who=hunter2\n'
        '[2026-11-22 10:00:00,001] (heat-config) [DEBUG] Running '
        '/var/lib/heat-config/heat-config-script/c1\n'
        'Traceback (most recent call last):\n'
        f'{place} 98, in <module>\n'
        '    sys.exit(main(sys.argv))\n'
        '             ^^^^^^^^^^^^^^\n'
        f'{place} 62, in main\n'
        '    subproc = subprocess.Popen([fn], stdout=subprocess.PIPE,\n'
        "OSError: [Errno 8] Exec format error: '/var/lib/c1'\n"
    )
    script = hook.replace('/usr/libexec/heat-config/hooks', '/opt/tool')
    for stderr, told in (
        (hook, 'the hook "script" itself crashed, not the config'),
        (script, 'the exit status (deploy_status_code) is 1'),
    ):
        assert_failed(
            f"{told}: OSError: [Errno 8] Exec format error: '/var/lib/c1'",
            outcome({'deploy_status_code': 1, 'deploy_stderr': stderr}),
        )


@pytest.mark.parametrize(
    'code',
    [
        *('hunter2', '1' * 9, '²', '\u0660', '0x0', '0_0', '--1', '-', ' '),
        *('nan', 0.5, 1e300, 10**20, True, [1], {'a': 0}),
    ],
    ids=str,
)
def test_a_status_that_is_no_number_fails_and_is_not_quoted(code):
    found = outcome({'deploy_status_code': code})
    assert_failed('deploy_status_code is not a number', found)


def test_an_error_output_with_a_value_fails_by_its_name():
    for value in ('hunter2', 7, 1.5, True, ['x'], {'a': None}):
        found = outcome({'broken': value}, ERROR)
        assert_failed('error output "broken" has a value', found)
        assert found.outputs['broken'] == value
        # Only if it was declared so.
        for kind in (False, None):
            declared = {**ERROR, 'error_output': kind}
            assert_complete(outcome({'broken': value}, declared))
    assert_complete(outcome({}, ERROR))
    for value in ('', ' \n', None, False, [], {}, 0, 0.0, '0\n'):
        assert_complete(outcome({'broken': value}, ERROR))
    assert_failed(
        'the exit status (deploy_status_code) is 2; '
        'error output "a" has a value; error output "b" has a value',
        outcome(
            {'deploy_status_code': 2, 'a': 'x', 'b': 'y'},
            *({'name': name, 'error_output': True} for name in 'ab'),
        ),
    )


def test_a_signal_that_cannot_be_read_fails_without_outputs():
    found = body.failure('it is not JSON')
    assert_failed('The signal cannot be used: it is not JSON', found)
    assert found.outputs == dict.fromkeys(body.STANDARD_OUTPUTS)
