# SPDX-License-Identifier: Apache-2.0
"""Why an action of a deployment fails, in the words that Heat shows.

Heat begins the reason of a resource with the name of the class.
"""

from heat_plugins import errors


class Error(errors.Failed):
    """An action has failed; the message says why."""


class NoAnswer(Error):
    """No answer could come back from a server, so it is given nothing."""


class Unusable(errors.Failed):
    """A transport cannot be used here; the message says why."""
