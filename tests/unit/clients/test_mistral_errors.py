# SPDX-License-Identifier: Apache-2.0
"""What goes wrong when Mistral is called."""

from keystoneauth1 import exceptions
from mistralclient.api import base
import testtools

from heat_plugins import absences
from heat_plugins import errors
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
            answered(500, 'Keystone says no (HTTP 503)'),
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
            (answered(500, 'no role (HTTP 404)'), errors.ServiceError),
            (exceptions.SSLError('whose certificate?'), errors.ServiceError),
            (exceptions.EndpointNotFound('none'), errors.ServiceError),
            (exceptions.Unauthorized('no'), errors.Denied),
        ):
            self.assertEqual(kind, self.kind(error), error)

    def test_the_text_is_one_line_for_people(self):
        for error, said in (
            (
                answered(500, 'a\n b (HTTP 403) (Request-ID: req-1)'),
                'Mistral answers 500: a b (HTTP 403)',
            ),
            (
                answered(503, b'<html>...</html>'),
                'Mistral answers 503: no reason given',
            ),
            (exceptions.ConnectFailure('x'), 'Mistral does not answer: x'),
            (
                exceptions.EndpointNotFound('x'),
                absences.service('workflowv2'),
            ),
        ):
            self.assertEqual(said, str(mistral_api.judge(error)))

    def test_what_is_none_of_mistrals_is_left_alone(self):
        self.assertIsNone(mistral_api.judge(ValueError()))


class TrustTest(testtools.TestCase):
    def explained(self, text, trust_id=None):
        return mistral_api.trust_refused(answered(500, text), trust_id)

    def test_each_reason_names_who_has_to_do_what(self):
        for text, trust_id, expected in (
            (
                'Delegated tokens cannot manage trusts.. (HTTP 403)',
                None,
                'application credential',
            ),
            ('You are not authorized (HTTP 403)', 'x', 'heat.conf'),
            ('You are not authorized (HTTP 403)', None, 'create_trust'),
            ('Could not find role: x. (HTTP 404)', None, "this user's roles"),
            ('authentication (HTTP 401)', None, '[keystone_authtoken]'),
        ):
            self.assertIn(expected, self.explained(text, trust_id))

    def test_what_is_no_trust_is_not_explained(self):
        self.assertIsNone(self.explained('failed to find next date'))
        self.assertIsNone(self.explained('Keystone is away (HTTP 503)'))
        self.assertIsNone(
            mistral_api.trust_refused(answered(403, '(HTTP 403)'), None)
        )
