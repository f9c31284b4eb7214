# SPDX-License-Identifier: Apache-2.0
"""What is used of Heat's objects; Heat itself ships no types."""

from collections.abc import Mapping
import datetime
from typing import Any, Protocol

from heat_plugins.deployments import deliveries
from heat_plugins.runs import orchestration


class Context(Protocol):
    """A `heat.common.context.RequestContext`.

    :ivar auth_plugin: keystoneauth's.
    :ivar clients: Heat's, which hold the context by a weak reference.
    :ivar trust_id: None if it does not come by a trust.
    """

    auth_plugin: Any
    clients: Any
    is_admin: bool
    keystone_session: Any
    project_id: str
    roles: list[str]
    trust_id: str | None
    user_domain_id: str | None
    user_id: str | None


class Stack(Protocol):
    """A `heat.engine.stack.Stack`.

    :ivar current_traversal: of what the stack does, as it was when loaded.
    :ivar owner_id: of the stack that it is nested in, if it is.
    :ivar tenant_id: of its project.
    """

    FAILED: str
    IN_PROGRESS: str
    ROLLBACK: str
    context: Context
    current_traversal: str | None
    defn: Any
    id: str
    name: str
    owner_id: str | None
    parameters: Any
    stack_user_project_id: str | None
    t: Any
    tenant_id: str
    thread_group_mgr: Any
    user_creds_id: str | None

    def path_in_stack(self) -> list[tuple[str | None, str]]: ...

    def root_stack_id(self) -> str: ...

    def stored_context(self) -> Context: ...

    def timeout_secs(self) -> int: ...


class Resource(Protocol):
    """A `heat.engine.resource.Resource`.

    :ivar resource_id: the physical one; None before it is known.
    :ivar t: its definition in the template.
    """

    FAILED: str
    action: str
    context: Context
    created_time: datetime.datetime | None
    name: str
    properties: Mapping[str, Any]
    root_stack_id: str | None
    stack: Stack
    status: str
    t: Any
    updated_time: datetime.datetime | None

    @property
    def resource_id(self) -> str | None: ...

    def _add_event(self, action: str, status: str, reason: str) -> None: ...

    def client(self, name: str | None = None) -> Any: ...

    def client_plugin(self, name: str | None = None) -> Any: ...

    def data(self) -> dict[str, str]: ...

    def data_delete(self, key: str) -> bool: ...

    def data_set(self, key: str, value: str, redact: bool = False) -> None: ...

    def resource_id_set(self, resource_id: str | None) -> None: ...

    def rpc_client(self) -> Any: ...


class User(Resource, Protocol):
    """A resource for which Heat makes a user, and keys and queues for that.

    :ivar password: of the user; None if it has none.
    """

    password: str | None

    def keystone(self) -> Any: ...

    def _delete_keypair(self) -> None: ...

    def _delete_user(self) -> None: ...

    def _get_ec2_signed_url(
        self, *, never_expire: bool = False
    ) -> str | None: ...

    def _get_heat_signal_credentials(self) -> Mapping[str, Any]: ...

    def _get_user_id(self) -> str | None: ...

    def _get_zaqar_signal_queue_id(self) -> str: ...


class Deployment(User, Protocol):
    """One of our deployments that is in the database.

    :ivar id: its number there.
    :ivar replaces: the number of the resource in whose place it is created.
    """

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
    resource_id: str

    @property
    def label(self) -> str: ...

    @property
    def names(self) -> list[str]: ...

    def derived(
        self,
        action: str,
        source: deliveries.Source,
        signalling: deliveries.Signalling,
    ) -> orchestration.Draft: ...

    def keep_id(self) -> None: ...

    def take_id(self) -> None: ...

    def source(self) -> deliveries.Source: ...

    def tell(self, action: str, reason: str) -> None: ...

    def type(self) -> str: ...
