# SPDX-License-Identifier: Apache-2.0
"""Names for Heat's own objects, and what is used of our deployments.

Heat ships no types: to the type checker its classes can be anything. The names
are for readers.
"""

from collections.abc import Mapping
from typing import Any, Protocol, TypeAlias

from heat.common import context
from heat.common import exception
from heat.engine import properties
from heat.engine import resource
from heat.engine import rsrc_defn
from heat.engine import stack

from heat_plugins import heat_values
from heat_plugins.deployments import plan_tasks

Context: TypeAlias = context.RequestContext
Definition: TypeAlias = rsrc_defn.ResourceDefinition
Properties: TypeAlias = properties.Properties
Schema: TypeAlias = properties.Schema
Resource: TypeAlias = resource.Resource
Stack: TypeAlias = stack.Stack


class Deployment(Protocol):
    """One of our deployments that is in the database.

    :ivar id: its number there.
    :ivar password: of the user that Heat makes for it; None if it has none.
    :ivar replaces: the number of the resource in whose place it is created.
    :ivar stack: Heat's, as it was when loaded.
    """

    context: Context
    name: str
    action: str
    status: str
    properties: Mapping[str, Any]
    stack: Stack
    password: str | None
    resource_id: str
    CONFIG: str
    DELIVERY_TIMEOUT: str
    DEPLOY_ACTIONS: str
    INPUT_VALUES: str
    SERVER: str
    SIGNAL_TRANSPORT: str
    SIGNAL_URL_LIFETIME: str
    TIMEOUT: str
    id: int
    replaces: int | None

    def _add_event(self, action: str, status: str, reason: str) -> None: ...

    def client_plugin(self, name: str | None = None) -> Any: ...

    def data(self) -> dict[str, str]: ...

    def data_delete(self, key: str) -> bool: ...

    def data_set(self, key: str, value: str, redact: bool = False) -> None: ...

    def rpc_client(self) -> Any: ...

    def keystone(self) -> Any: ...

    def _delete_keypair(self) -> None: ...

    def _delete_user(self) -> None: ...

    def _get_ec2_signed_url(
        self, *, never_expire: bool = False
    ) -> str | None: ...

    def _get_heat_signal_credentials(self) -> Mapping[str, Any]: ...

    def _get_user_id(self) -> str | None: ...

    def _get_zaqar_signal_queue_id(self) -> str: ...

    @property
    def label(self) -> str: ...

    @property
    def member(self) -> plan_tasks.Member: ...

    def keep_id(self) -> None: ...

    def take_id(self, number: str) -> None: ...

    def source(self) -> heat_values.DerivedConfig: ...

    def tell(self, action: str, reason: str) -> None: ...

    def warn(self, action: str, reason: str) -> None: ...

    def type(self) -> str: ...


def invalid(
    resource: Any, message: object, *path: str
) -> exception.StackValidationFailed:
    """Return the error, with its place in the template.

    :param path: of the property, if it is one.
    """
    template = resource.stack.t
    section = template.get_section_name(rsrc_defn.PROPERTIES)
    return exception.StackValidationFailed(
        path=[template.RESOURCES, resource.t.name, section, *path],
        message=str(message),
    )
