# SPDX-License-Identifier: Apache-2.0
"""A result by a pre-signed URL shows which action it answers."""

import json

from heat_plugins.signals import presigned

URL = (
    'http://cfn.invalid/v1/signal/arn%3Aopenstack?'
    'Timestamp=2026-11-24T17%3A00%3A00Z&Signature=a%2Bb%2F1%3D'
)


def credentials(signature):
    return json.dumps(
        {'ec2Credentials': {'access': 'key', 'signature': signature}}
    )


def test_the_details_stay_as_they_are_but_a_map_knows_its_signature():
    details = {'deploy_status_code': 0}
    assert presigned.noted(details, credentials('a')) == details
    for given in (None, '', 'no JSON', '[]', '{}', '{"ec2Credentials":0}'):
        found = presigned.noted({}, given)
        assert not isinstance(found, presigned.Presigned), given
    for details in (None, 'text', ['a list']):
        assert presigned.noted(details, credentials('a')) is details


def test_the_signature_decides():
    for signature, expected in (('a+b/1=', True), ('a b/1=', False)):
        details = presigned.noted({}, credentials(signature))
        assert presigned.came_by(details, URL) is expected
    signed = presigned.noted({}, credentials('a'))
    for details, url in (
        ({}, URL),
        (None, URL),
        (signed, 'http://swift.invalid/v1/signal'),
        (signed, None),
    ):
        assert presigned.came_by(details, url) is None
