# SPDX-License-Identifier: Apache-2.0
"""What Keystone's refusals look like through a keystoneauth session."""

from keystoneauth1 import exceptions

#: No token can be had; that will not pass by itself.
REFUSALS = (
    exceptions.Unauthorized,
    exceptions.Forbidden,
    # What Keystone answers when a trust or an application credential has
    # been deleted.
    exceptions.NotFound,
    exceptions.AuthorizationFailure,
    exceptions.MissingAuthPlugin,
)
