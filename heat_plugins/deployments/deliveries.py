# SPDX-License-Identifier: Apache-2.0
"""What a server is given for an action, and what is stored of that."""

from collections import abc
import dataclasses
from typing import Any

from heat_plugins import heat_values
from heat_plugins import masking
from heat_plugins.configs import hidden_inputs
from heat_plugins.configs import hooks
from heat_plugins.objectstore import keys
from heat_plugins.signals import transport_names
from heat_plugins.signals import watcher

# The input with the URL that a result is sent to.
URL_INPUT = 'deploy_signal_id'


@dataclasses.dataclass(frozen=True, kw_only=True)
class Signalling:
    """How one action is signalled.

    :ivar transport: one of `transport_names.NAMES`, neither AUTO nor
        TEMP_URL_SIGNAL.
    :ivar watched: whether the hub polls for the signal, rather than Heat's
        own class.
    :ivar object_name: where the signal will lie, for TEMP_URL_POLL.
    :ivar url: to PUT or POST it to, without credentials; it is a secret.
    :ivar credentials: those of the deployment's user, for Heat's and Zaqar's
        APIs.
    :ivar queue_id: of the Zaqar queue.
    :ivar report_name: where a report that the server has started would lie,
        for TEMP_URL_POLL.
    :ivar report_url: the TempURL for that.
    :ivar control_url: the TempURL of the object that tells the server to
        stop, for TEMP_URL_POLL.
    :ivar signer: what has signed them.
    :ivar timeout: in how many seconds the server has to answer.
    """

    transport: str
    watched: bool = True
    object_name: str | None = None
    url: str | None = dataclasses.field(default=None, repr=False)
    credentials: abc.Mapping[str, Any] | None = dataclasses.field(
        default=None, repr=False
    )
    queue_id: str | None = None
    report_name: str | None = None
    report_url: str | None = dataclasses.field(default=None, repr=False)
    control_url: str | None = dataclasses.field(default=None, repr=False)
    signer: keys.Signer | None = None
    timeout: int | None = None

    @property
    def takes_reports(self) -> bool:
        """Whether a report may come as a signal of the resource."""
        return self.transport in transport_names.BY_SIGNAL

    @property
    def brings_reports(self) -> bool:
        """Whether a server that is able to can report that it has started.

        Heat itself takes whatever lies in a Zaqar queue for the result.
        """
        return self.takes_reports or self.report_name is not None

    def of_before(self, row: heat_values.DeploymentRow) -> 'Signalling':
        """Return how a server answers that was given its URL before.

        The key that has signed it may have been changed since.
        """
        url = row.inputs.get(URL_INPUT)
        if self.signer is None or self.object_name is None or not url:
            return self
        signer = self.signer.behind(self.object_name, str(url))
        return dataclasses.replace(self, signer=signer)


#: The signalling of an action for which nothing was created yet.
NOTHING = Signalling(transport=transport_names.NO_SIGNAL)


class Terms:
    """What a template says of all actions of a deployment.

    Each is resolved as late as possible: what a deleted deployment does not
    need may no longer exist.

    :param properties: of the deployment, by name.
    """

    def __init__(self, properties: abc.Mapping[str, Any]) -> None:
        self._properties = properties

    @property
    def server_id(self) -> str:
        """The id of its server."""
        return str(self._properties['server'])

    @property
    def actions(self) -> abc.Collection[str]:
        """Those that it lists; a component has its own."""
        return tuple(self._properties['actions'])

    @property
    def transport(self) -> str:
        """The canonical name; see `transport_names`."""
        return transport_names.canonical(self._properties['signal_transport'])

    @property
    def timeout(self) -> int | None:
        """Seconds that one may take; None where the stack's time counts."""
        return self._properties.get('timeout')

    @property
    def delivery_timeout(self) -> int | None:
        """Seconds until the server must have reported; None: never."""
        return self._properties.get('delivery_timeout')


@dataclasses.dataclass(frozen=True, kw_only=True)
class Work:
    """An action that servers run."""

    action: str
    source: heat_values.DerivedConfig
    terms: Terms

    @property
    def tool(self) -> str | None:
        """The name of the hook that runs it."""
        return self.source.tool(self.action)

    def unknown_hook(self, known: abc.Collection[str]) -> str | None:
        """Return the hook that runs it, if servers may lack that."""
        tool = self.tool or ''
        return None if hooks.is_known(tool, known) else tool

    @property
    def is_repeatable(self) -> bool:
        """Whether a server may run it a second time."""
        return (
            self.terms.transport == transport_names.AUTO
            or hooks.name_of(self.tool or '') in hooks.REPEATABLE
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Delivery:
    """A config for a server, ready to be written.

    :ivar config_id: the id that the derived config gets.
    :ivar draft: the derived config, in the form that agents can take.
    :ivar input_values: what Heat's API shows as those of the deployment.
    :ivar reading_project: see
        `heat_values.DeploymentRow`.
    :ivar before: what the server was given before; None if nothing.
    :ivar reason: what the row says; None for the words of Heat's own class.
    """

    deployment_id: str
    server_id: str
    config_id: str
    action: str
    draft: heat_values.DerivedConfig
    input_values: abc.Mapping[str, Any] | None = dataclasses.field(repr=False)
    signalling: Signalling
    reading_project: str | None
    before: heat_values.DeploymentRow | None
    reason: str | None = None

    @property
    def mask(self) -> masking.Mask:
        """What masks the hidden parts of its inputs."""
        return hidden_inputs.mask(self.draft.inputs, self.draft.options)

    @property
    def ticket(self) -> watcher.Ticket:
        """What the watcher polls for."""
        return watcher.Ticket(
            deployment_id=self.deployment_id,
            config_id=self.config_id,
            object_name=self.signalling.object_name,
            report_name=self.signalling.report_name,
        )

    @property
    def is_signalled(self) -> bool:
        """Whether a signal ends the action."""
        return self.signalling.transport != transport_names.NO_SIGNAL


def reading_project(
    transport: str, users_project: str | None, *, has_queue: bool
) -> str | None:
    """Return the project whose users may read a row, if any.

    Every stack user in that project could read the URL with which this server
    answers. Only Zaqar needs it: Heat takes the server's queue and the
    signal's queue in that project.

    :param users_project: that of the stack's users.
    :param has_queue: whether the server gets configs through Zaqar.
    """
    if has_queue or transport == transport_names.ZAQAR_SIGNAL:
        return users_project
    return None
