# SPDX-License-Identifier: Apache-2.0
"""What goes wrong when Mistral is called."""

from keystoneauth1 import exceptions
from mistralclient.api import base
import testtools

from heat_plugins import errors
from heat_plugins import wording
from heat_plugins.clients import mistral_api


def answered(status, message):
    return base.APIException(error_code=status, error_message=message)


class JudgeTest(testtools.TestCase):
    def test_each_failure_has_one_meaning_and_one_line_for_people(self):
        for error, kind, said in (
            # These may pass.
            (
                exceptions.ConnectFailure('x'),
                errors.Unavailable,
                'Mistral does not answer: x',
            ),
            (exceptions.ConnectTimeout('late'), errors.Unavailable, None),
            (
                answered(503, b'<html>...</html>'),
                errors.Unavailable,
                'Mistral answers 503: no reason given',
            ),
            (answered(504, None), errors.Unavailable, None),
            (answered(429, 'slow down'), errors.Unavailable, None),
            (exceptions.DiscoveryFailure('none'), errors.Unavailable, None),
            (exceptions.ServiceUnavailable(), errors.Unavailable, None),
            (ConnectionResetError('reset'), errors.Unavailable, None),
            # And these do not.
            (answered(400, 'Invalid input'), errors.ServiceError, None),
            (answered(403, 'no'), errors.Denied, None),
            (answered(404, 'no such thing'), errors.NotFound, None),
            (answered(409, 'Duplicate'), errors.Conflict, None),
            (
                answered(500, 'a\n b (HTTP 403)'),
                errors.LikelyDefect,
                'Mistral answers 500: a b (HTTP 403)',
            ),
            (exceptions.SSLError('untrusted'), errors.ServiceError, None),
            (
                exceptions.EndpointNotFound('x'),
                errors.ServiceError,
                wording.no_service('workflowv2'),
            ),
            (exceptions.Unauthorized('no'), errors.Denied, None),
        ):
            judged = mistral_api.judge(error)
            self.assertIs(kind, type(judged), error)
            if said is not None:
                self.assertEqual(said, str(judged))
        self.assertIsNone(mistral_api.judge(ValueError()))
