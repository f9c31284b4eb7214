# SPDX-License-Identifier: Apache-2.0
"""What the bytes that a server sends mean."""

import json

import testtools

from heat_plugins import errors
from heat_plugins.signals import body


def nested(levels):
    """Return a body with a list that many levels deep."""
    return b'{"a": ' + b'[' * levels + b']' * levels + b'}'


class ParseTest(testtools.TestCase):
    def assert_bad(self, content, reason):
        error = self.assertRaises(errors.BadSignal, body.parse, content)
        assert reason in str(error)
        assert len(str(error)) < 80

    def test_a_map_is_read_as_it_was_sent(self):
        details = {'a': [1, 2.5, None, True], 'ü': {'b': 'x\0y'}}
        for text in (json.dumps(details), json.dumps(details, indent=1)):
            assert body.parse(text.encode()) == details
        assert body.parse('{"ü": 1}'.encode()) == {'ü': 1}

    def test_an_empty_body_is_a_signal_without_outputs(self):
        for content in (b'', b' \r\n', b'null', b'{}'):
            assert body.parse(content) == {}

    def test_what_is_no_map_of_json_is_refused_with_the_reason(self):
        for content, reason in (
            (b'<html>', 'it is not JSON'),
            (b'{"a": 1', 'it is not JSON'),
            (b"{'a': 1}", 'it is not JSON'),
            (b'{} {}', 'it is not JSON'),
            (b'\0', 'it is not JSON'),
            # Only Python takes it, or no longer converts it.
            (b'{"a": NaN}', 'it is not JSON'),
            (b'{"a": [-Infinity]}', 'it is not JSON'),
            (b'{"a": %s}' % (b'9' * 5000), 'it is not JSON'),
            (b'{"a": "\xff"}', 'it is not UTF-8'),
            ('{"a": 1}'.encode('utf-16'), 'it is not UTF-8'),
            (b'[1]', 'it is a list, but must be a map'),
            (b'"text"', 'it is a string, but must be a map'),
            (b'5', 'it is a number, but must be a map'),
            (b'0.5', 'it is a number, but must be a map'),
            (b'false', 'it is a boolean, but must be a map'),
            (b'{"a": [{"b": -1e999}]}', 'an infinite number'),
        ):
            self.assert_bad(content, reason)

    def test_half_a_surrogate_pair_is_refused_and_a_whole_one_is_not(self):
        self.assert_bad(rb'{"a": ["\ud83d"]}', 'an incomplete character')
        self.assert_bad(rb'{"\udc00": 1}', 'an incomplete character')
        assert body.parse(rb'{"a": "\ud83d\ude00"}') == {'a': '😀'}

    def test_deep_nesting_is_refused_long_before_python_gives_up(self):
        assert body.parse(nested(60)) is not None
        self.assert_bad(nested(70), 'levels deep')
        self.assert_bad(b'{"a":' * 300 + b'1' + b'}' * 300, 'levels deep')
        error = self.assertRaises(errors.BadSignal, body.parse, nested(400000))
        assert len(str(error)) < 80

    def test_of_a_key_that_comes_twice_the_last_counts(self):
        assert body.parse(b'{"a": 1, "a": 2}') == {'a': 2}

    def test_a_reason_shows_nothing_of_the_body(self):
        for content in (b'hunter2', b'["hunter2"]', b'"hunter2"'):
            error = self.assertRaises(errors.BadSignal, body.parse, content)
            assert 'hunter2' not in str(error)

    def test_details_that_came_as_values_are_held_to_the_same(self):
        assert body.as_map(None) == {}
        assert body.as_map({'a': 1}) == {'a': 1}
        for details in (
            {'a': float('nan')},
            {'a': '\ud800'},
            {'a': 10**5000},
            {'a': object()},
            [],
        ):
            self.assertRaises(errors.BadSignal, body.as_map, details)


class OutcomeTest(testtools.TestCase):
    def outcome(self, details, *declared):
        return body.outcome(
            details,
            [
                {'name': each} if isinstance(each, str) else each
                for each in declared
            ],
        )

    def assert_complete(self, outcome):
        assert outcome.status == 'COMPLETE'
        assert outcome.reason == 'Outputs received'

    def assert_failed(self, reason, outcome):
        assert outcome.status == 'FAILED'
        assert outcome.reason == reason

    def test_a_signal_without_outputs_completes(self):
        outcome = self.outcome({}, 'result')
        self.assert_complete(outcome)
        assert outcome.outputs == dict.fromkeys(
            ('deploy_stdout', 'deploy_stderr', 'deploy_status_code')
        )

    def test_declared_and_standard_outputs_are_kept_and_no_others(self):
        outcome = self.outcome(
            {
                'deploy_stdout': 'out',
                'deploy_status_code': 0,
                'result': [1],
                'undeclared': 'x',
            },
            'result',
            'absent',
        )
        self.assert_complete(outcome)
        assert outcome.outputs == {
            'deploy_stdout': 'out',
            'deploy_stderr': None,
            'deploy_status_code': 0,
            'result': [1],
        }

    def test_each_form_of_zero_is_success(self):
        for code in (0, 0.0, '0', '', '00', ' 0\n', '-0', '0.0', None, False):
            outcome = self.outcome({'deploy_status_code': code})
            self.assert_complete(outcome)
            assert outcome.outputs['deploy_status_code'] == code

    def test_another_status_fails_and_is_named(self):
        for code, text in (
            (1, '1'),
            ('1', '1'),
            (-9, '-9'),
            (2.0, '2'),
            (' 127\n', '127'),
            ('+3', '3'),
        ):
            self.assert_failed(
                f'the exit status (deploy_status_code) is {text}',
                self.outcome({'deploy_status_code': code}),
            )

    def test_the_last_line_of_stderr_says_why(self):
        for stderr, told in (
            ('one\ntwo: no such file\n \n', ': two: no such file'),
            ('  x\x1b[31m\r\n', ': x\\x1b[31m'),
            ('x' * 999, f': {"x" * 119}…'),
            ('😀', ': \\U0001f600'),
            ('', ''),
            (' \n', ''),
            (None, ''),
            (7, ''),
            (['x'], ''),
        ):
            self.assert_failed(
                f'the exit status (deploy_status_code) is 1{told}',
                self.outcome(
                    {'deploy_status_code': 1, 'deploy_stderr': stderr}
                ),
            )

    def test_the_reason_of_a_success_does_not_quote_stderr(self):
        self.assert_complete(self.outcome({'deploy_stderr': 'deprecated'}))

    def test_secrets_in_stderr_are_masked_before_it_is_cut(self):
        for stderr in (
            'x' * 110 + ' hunter2hunter2',
            'PUT https://s/c/o?temp_url_sig=hunter2hunter2&temp_url_expires=9',
        ):
            details = {'deploy_status_code': 1, 'deploy_stderr': stderr}
            outcome = body.outcome(details, (), secrets=['hunter2hunter2'])
            assert 'hunter' not in outcome.reason

    def test_secrets_are_worked_out_only_for_a_failure(self):
        def secrets():
            raise AssertionError
            yield

        for details in ({}, {'deploy_status_code': 0, 'deploy_stderr': 'x'}):
            body.outcome(details, (), secrets=secrets())

    def test_a_hook_that_crashed_is_told_from_what_it_ran(self):
        # Of heat-agents' hook-script, for a script without "#!".
        hook = (
            '[2026-11-22 10:00:00,000] (heat-config) [INFO] who=hunter2\n'
            '[2026-11-22 10:00:00,001] (heat-config) [DEBUG] Running '
            '/var/lib/heat-config/heat-config-script/c1\n'
            'Traceback (most recent call last):\n'
            '  File "/usr/libexec/heat-config/hooks/script", line 98, in '
            '<module>\n'
            '    sys.exit(main(sys.argv))\n'
            '             ^^^^^^^^^^^^^^\n'
            '  File "/usr/libexec/heat-config/hooks/script", line 62, in '
            'main\n'
            '    subproc = subprocess.Popen([fn], stdout=subprocess.PIPE,\n'
            "OSError: [Errno 8] Exec format error: '/var/lib/c1'\n"
        )
        script = hook.replace('/usr/libexec/heat-config/hooks', '/opt/tool')
        for stderr, told in (
            (hook, 'the hook "script" itself crashed, not the config'),
            (script, 'the exit status (deploy_status_code) is 1'),
        ):
            self.assert_failed(
                f"{told}: OSError: [Errno 8] Exec format error: '/var/lib/c1'",
                self.outcome(
                    {'deploy_status_code': 1, 'deploy_stderr': stderr}
                ),
            )

    def test_a_status_that_is_no_number_fails_and_is_not_quoted(self):
        for code in (
            'hunter2',
            '1' * 9,
            '²',
            '\u0660',
            '0x0',
            '0_0',
            '--1',
            '-',
            ' ',
            'nan',
            0.5,
            1e300,
            10**20,
            True,
            [1],
            {'a': 0},
        ):
            self.assert_failed(
                'deploy_status_code is not a number',
                self.outcome({'deploy_status_code': code}),
            )

    def test_an_error_output_with_a_value_fails_by_its_name(self):
        error = {'name': 'broken', 'error_output': True}
        for value in ('hunter2', 7, 1.5, True, ['x'], {'a': None}):
            outcome = self.outcome({'broken': value}, error)
            self.assert_failed('error output "broken" has a value', outcome)
            assert outcome.outputs['broken'] == value

    def test_an_error_output_without_a_value_does_not_fail(self):
        error = {'name': 'broken', 'error_output': True}
        self.assert_complete(self.outcome({}, error))
        for value in ('', ' \n', None, False, [], {}, 0, 0.0, '0\n'):
            self.assert_complete(self.outcome({'broken': value}, error))

    def test_an_output_is_an_error_only_if_it_was_declared_so(self):
        for error_output in (False, None):
            declared = {'name': 'log', 'error_output': error_output}
            self.assert_complete(self.outcome({'log': 'text'}, declared))

    def test_all_causes_are_named(self):
        self.assert_failed(
            'the exit status (deploy_status_code) is 2; '
            'error output "a" has a value; error output "b" has a value',
            self.outcome(
                {'deploy_status_code': 2, 'a': 'x', 'b': 'y'},
                {'name': 'a', 'error_output': True},
                {'name': 'b', 'error_output': True},
            ),
        )

    def test_a_signal_that_cannot_be_read_fails_without_outputs(self):
        outcome = body.failure('it is not JSON')
        self.assert_failed(
            'The signal cannot be used: it is not JSON', outcome
        )
        assert outcome.outputs == dict.fromkeys(body.STANDARD_OUTPUTS)
