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
    def kind(self, error):
        return type(mistral_api.judge(error))

    def test_what_passes(self):
        for error in (
            exceptions.ConnectFailure('refused'),
            exceptions.ConnectTimeout('late'),
            answered(503, b'<html>'),
            answered(504, None),
            answered(429, 'slow down'),
            exceptions.DiscoveryFailure('no version'),
            exceptions.ServiceUnavailable(),
            ConnectionResetError('reset'),
        ):
            self.assertEqual(errors.Unavailable, self.kind(error), error)

    def test_what_does_not(self):
        for error, kind in (
            (answered(400, 'Invalid input'), errors.ServiceError),
            (answered(403, 'no'), errors.Denied),
            (answered(404, 'no such thing'), errors.NotFound),
            (answered(409, 'Duplicate'), errors.Conflict),
            (answered(500, 'a defect'), errors.LikelyDefect),
            (exceptions.SSLError('whose certificate?'), errors.ServiceError),
            (exceptions.EndpointNotFound('none'), errors.ServiceError),
            (exceptions.Unauthorized('no'), errors.Denied),
        ):
            self.assertEqual(kind, self.kind(error), error)

    def test_the_text_is_one_line_for_people(self):
        for error, said in (
            (
                answered(500, 'a\n b (HTTP 403)'),
                'Mistral answers 500: a b (HTTP 403)',
            ),
            (
                answered(503, b'<html>...</html>'),
                'Mistral answers 503: no reason given',
            ),
            (exceptions.ConnectFailure('x'), 'Mistral does not answer: x'),
            (
                exceptions.EndpointNotFound('x'),
                wording.no_service('workflowv2'),
            ),
        ):
            self.assertEqual(said, str(mistral_api.judge(error)))

    def test_what_is_none_of_mistrals_is_left_alone(self):
        self.assertIsNone(mistral_api.judge(ValueError()))
