# SPDX-License-Identifier: Apache-2.0
"""The way from deployments to runs, and the URL for triggers.

A resource type must not draw in all that leads runs. So heat-engine installs
that module here as it starts, see `patches`: `engine.runs.triggering`.
"""

from collections import abc
import dataclasses
import types
from typing import Any

from heat.common import exception
from heat.common.i18n import _

from heat_plugins import errors
from heat_plugins import heat_values
from heat_plugins.deployments import deliveries
from heat_plugins.engine import heat_types

#: The key in a resource's data for the URL that a template has asked for.
URL_KEY = 'heat_plugins_trigger_url'


@dataclasses.dataclass(frozen=True, kw_only=True)
class Subject:
    """A deployment that runs are started on.

    :ivar resource: the deployment, or the group that it is a member of.
    :ivar name: of the resource, or of the member.
    :ivar names: the same, after the name of the group.
    :ivar deployment_id: None before its first action.
    :ivar row: what its server was given last, if anything.
    :ivar draft: returns what its server would be given for an action.
    :ivar named_config: returns the template's config, if there is one.
    """

    resource: heat_types.Resource
    name: str
    names: abc.Sequence[str]
    deployment_id: str | None
    row: heat_values.DeploymentRow | None
    terms: deliveries.Terms
    draft: abc.Callable[[str], heat_values.DerivedConfig]
    named_config: abc.Callable[[], heat_values.Config | None]

    def run_target(self, wanted: Any) -> Any:
        """Return this deployment as the target of a run.

        :raises errors.Refused: nothing can be started on it, or not that.
        """
        return room().target(self, wanted)


_installed: list[types.ModuleType] = []


def install(room: types.ModuleType) -> None:
    """Let deployments of this process start runs."""
    _installed[:] = [room]


def room() -> types.ModuleType:
    """Return the module that leads runs; its orders are opaque here.

    :raises errors.Refused: heat-engine has not loaded it.
    """
    if not _installed:
        raise errors.Refused(
            'heat-engine has not loaded what starts runs; its log says why'
        )
    return _installed[0]


def offer_url(deployment: heat_types.Resource, is_wanted: bool) -> None:
    """Create or withdraw the URL to send triggers to.

    A key of the deployment's user signs it. CFN_SIGNAL uses the same key, and
    gets another for the next action.

    :raises exception.Error: no key pair can be made.
    """
    is_there = deployment.data().get(URL_KEY) is not None
    if is_wanted and not is_there:
        url = deployment._get_ec2_signed_url(never_expire=True)
        if not url:
            raise exception.Error(
                _(
                    'Cannot create a key pair for "trigger_url"; '
                    "heat-engine's log says why. Heat needs a stack domain "
                    'for that (stack_user_domain_id in heat.conf)'
                )
            )
        deployment.data_set(URL_KEY, url, redact=True)
    elif is_there and not is_wanted:
        deployment._delete_keypair()
        if deployment.password is None:
            # Neither HEAT_SIGNAL nor ZAQAR_SIGNAL has use for it.
            deployment._delete_user()
        deployment.data_delete(URL_KEY)
