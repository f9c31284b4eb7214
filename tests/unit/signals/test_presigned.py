# SPDX-License-Identifier: Apache-2.0
"""A result by a pre-signed URL shows which action it answers."""

import json

import testtools

from heat_plugins.signals import presigned

URL = (
    'http://cfn.invalid/v1/signal/arn%3Aopenstack?'
    'Timestamp=2026-11-24T17%3A00%3A00Z&Signature=a%2Bb%2F1%3D'
)


def credentials(signature):
    return json.dumps(
        {'ec2Credentials': {'access': 'key', 'signature': signature}}
    )


class NotedTest(testtools.TestCase):
    def test_the_details_stay_as_they_are(self):
        details = {'deploy_status_code': 0}
        assert presigned.noted(details, credentials('a')) == details

    def test_what_came_otherwise_has_no_signature(self):
        for given in (None, '', 'no JSON', '[]', '{}', '{"ec2Credentials":0}'):
            details = presigned.noted({}, given)
            assert not isinstance(details, presigned.Presigned), given

    def test_only_a_map_can_have_one(self):
        for details in (None, 'text', ['a list']):
            assert presigned.noted(details, credentials('a')) is details


class CameByTest(testtools.TestCase):
    def test_the_signature_decides(self):
        for signature, expected in (('a+b/1=', True), ('a b/1=', False)):
            details = presigned.noted({}, credentials(signature))
            assert presigned.came_by(details, URL) is expected

    def test_without_one_it_cannot_be_told(self):
        signed = presigned.noted({}, credentials('a'))
        for details, url in (
            ({}, URL),
            (None, URL),
            (signed, 'http://swift.invalid/v1/signal'),
            (signed, None),
        ):
            assert presigned.came_by(details, url) is None
