# SPDX-License-Identifier: Apache-2.0
"""Signal transports: which one an action uses, and what it needs for that.

One class for each transport, found by name. A class is asked to prepare the
transport for one action; if it cannot, it says why, and AUTO tries the
next.
"""

from collections import abc
import contextlib
import dataclasses
from typing import Any

from heat.common import password_gen
from heat.common.i18n import _
from keystoneauth1 import exceptions as ks_exceptions
from oslo_config import cfg

from heat_plugins import absences
from heat_plugins import config
from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins import heat_values
from heat_plugins.deployments import deliveries
from heat_plugins.deployments import failures
from heat_plugins.engine import heat_types
from heat_plugins.engine import hubs
from heat_plugins.engine.database import resources
from heat_plugins.engine.database import rows
from heat_plugins.objectstore import keys
from heat_plugins.signals import body
from heat_plugins.signals import live
from heat_plugins.signals import signal_names
from heat_plugins.signals import transport_names

LOG = foreign.logger(__name__)

config.register_opts(cfg.CONF)


def choose(
    deployment: heat_types.Deployment, config_id: str
) -> deliveries.Signalling:
    """Prepare the transport of one action of a deployment.

    :param deployment: the resource, with an id in the database.
    :param config_id: the id that the derived config is going to have.
    :raises failures.NoAnswer: the transport cannot be used, or under AUTO
        none.
    :raises errors.Unavailable: the same, but one of them may be usable later.
    """
    return _choose(
        deployment,
        deployment.properties[deployment.SIGNAL_TRANSPORT],
        config_id,
    )


def choose_again(
    deployment: heat_types.Deployment, row: heat_values.DeploymentRow
) -> deliveries.Signalling:
    """Return how an action is signalled that was delivered before.

    :param row: of the deployment, with the config of the action.
    :raises failures.NoAnswer: its signal cannot be polled for.
    :raises errors.Unavailable: the same, but it may be later.
    """
    name = transport_names.canonical(str(row.transport))
    if name == transport_names.TEMP_URL_POLL:
        return _choose(deployment, name, row.config.id)
    # Its server has what it takes.
    return deliveries.Signalling(
        transport=name, watched=name != transport_names.ZAQAR_SIGNAL
    )


def _choose(
    deployment: heat_types.Deployment, wanted: str, config_id: str
) -> deliveries.Signalling:
    """Prepare a transport by its name, or for AUTO the first usable.

    :raises failures.NoAnswer: it cannot be used, or under AUTO none.
    :raises errors.Unavailable: the same, but one of them may be usable later.
    """
    name = transport_names.canonical(wanted)
    is_automatic = name == transport_names.AUTO
    tried: list[str] = []
    may_pass = False
    for candidate in transport_names.AUTOMATIC if is_automatic else (name,):
        transport = _TRANSPORTS[candidate](deployment, is_automatic)
        try:
            chosen = transport.prepare(config_id)
        except failures.Unusable as exc:
            may_pass |= exc.may_pass
            tried.append(f'{candidate}: {exc}')
            continue
        if tried:
            LOG.info(
                '%(deployment)s uses %(chosen)s; these transports are '
                'unavailable: %(tried)s',
                {
                    'deployment': deployment.label,
                    'chosen': chosen.transport,
                    'tried': '. '.join(tried),
                },
            )
        return dataclasses.replace(chosen, timeout=transport.time_limit())
    kind = errors.Unavailable if may_pass else failures.NoAnswer
    raise kind(f'The signal transport cannot be used. {". ".join(tried)}')


def for_members(
    group: heat_types.Deployment,
) -> abc.Callable[[str, str], deliveries.Signalling]:
    """Prepare the transport of one action of all members of a group.

    :param group: one without nested stack, with an id in the database.
    :returns: how a member is signalled, by the ids of its deployment and of
        the config derived for it; that sends no request.
    :raises failures.NoAnswer: neither TEMP_URL_POLL nor NO_SIGNAL can be used.
    :raises errors.Unavailable: one of them may be usable later.
    """
    name = transport_names.canonical(group.properties[group.SIGNAL_TRANSPORT])
    if name == transport_names.NO_SIGNAL:
        return lambda deployment_id, config_id: deliveries.NOTHING
    transport = _TempURLPoll(group, name == transport_names.AUTO)
    try:
        signer = transport.signer()
    except failures.Unusable as exc:
        if exc.may_pass:
            raise errors.Unavailable(str(exc)) from exc
        raise failures.NoAnswer(
            _('The signal transport cannot be used. %(name)s: %(why)s')
            % {'name': transport.name, 'why': exc}
        ) from exc
    timeout = transport.time_limit()
    return lambda deployment_id, config_id: dataclasses.replace(
        transport.sign(signer, deployment_id, config_id), timeout=timeout
    )


def check(deployment: heat_types.Deployment) -> None:
    """Refuse a transport that this cloud cannot have.

    What cannot be told, such as while Keystone is unavailable, is not refused.

    :param deployment: a deployment of a template, or a group of some.
    :raises exception.StackValidationFailed: it names one.
    """
    name = transport_names.canonical(
        deployment.properties[deployment.SIGNAL_TRANSPORT]
    )
    transport = _TRANSPORTS.get(name)
    if transport is None:
        return
    try:
        lacking = transport.lacking(deployment)
    except Exception:
        LOG.debug('Cannot check the signal transports', exc_info=True)
        return
    if lacking is not None:
        raise heat_types.invalid(
            deployment,
            _(
                '%(name)s cannot be used: %(lacking)s. AUTO uses a transport '
                'that this cloud has.'
            )
            % {'name': name, 'lacking': lacking},
            deployment.SIGNAL_TRANSPORT,
        )


def root_stack_id(deployment: heat_types.Resource) -> str:
    """Return the id of the stack at the root of a deployment's."""
    return str(deployment.root_stack_id or deployment.stack.root_stack_id())


def hub_for(deployment: heat_types.Resource) -> hubs.Hub:
    """Return what a deployment shares with the others of its root stack."""
    return hubs.hub_for(deployment.stack, root_stack_id(deployment))


class _Transport:
    """A transport, for one deployment.

    :cvar name: its name in templates.
    :cvar service: the type of the service that it needs, and the client
        whose options in heat.conf say how to find that; or None.
    :param is_one_of_many: whether another may take its place.
    """

    name: str
    service: tuple[str, str] | None = None

    @classmethod
    def lacking(cls, deployment: heat_types.Deployment) -> str | None:
        """Return what this cloud lacks for it, or None."""
        if cls.service is None:
            return None
        # Any client will do; this one is always there.
        heat = deployment.client_plugin('heat')
        if heat.does_endpoint_exist(*cls.service):
            return None
        return absences.service(cls.service[0])

    def __init__(
        self, deployment: heat_types.Deployment, is_one_of_many: bool
    ) -> None:
        self.deployment = deployment
        self.is_one_of_many = is_one_of_many

    def prepare(self, config_id: str) -> deliveries.Signalling:
        """Make what one action needs to be signalled.

        :raises failures.Unusable: that is not possible here.
        """
        return deliveries.Signalling(transport=self.name)

    def time_limit(self) -> int | None:
        """Return the seconds that an action may take; None for no limit."""
        limit: int = self.deployment.stack.timeout_secs()
        own: int | None = self.deployment.properties[self.deployment.TIMEOUT]
        return min(limit, own or limit)


class _NoSignal(_Transport):
    name = transport_names.NO_SIGNAL

    def time_limit(self) -> None:
        # No engine waits for it.
        return None


class _CfnSignal(_Transport):
    name = transport_names.CFN_SIGNAL
    service = ('cloudformation', 'heat')

    @classmethod
    def lacking(cls, deployment: heat_types.Deployment) -> str | None:
        if cfg.CONF.heat_waitcondition_server_url:
            # Heat makes its URLs of that.
            return None
        return super().lacking(deployment)

    def prepare(self, config_id: str) -> deliveries.Signalling:
        with _unusable_if_fails():
            url = self.deployment._get_ec2_signed_url()
            if not url:
                raise failures.Unusable(
                    _(
                        "Heat cannot create a key pair; heat-engine's log "
                        'says why'
                    )
                )
            return deliveries.Signalling(transport=self.name, url=url)


class _HeatSignal(_Transport):
    name = transport_names.HEAT_SIGNAL

    def prepare(self, config_id: str) -> deliveries.Signalling:
        with _unusable_if_fails():
            return deliveries.Signalling(
                transport=self.name, credentials=_credentials(self.deployment)
            )


class _ZaqarSignal(_Transport):
    name = transport_names.ZAQAR_SIGNAL
    service = ('messaging', 'zaqar')

    @classmethod
    def lacking(cls, deployment: heat_types.Deployment) -> str | None:
        if deployment.client_plugin('zaqar') is None:
            lacking: str = _('python-zaqarclient is not installed')
            return lacking
        return super().lacking(deployment)

    def prepare(self, config_id: str) -> deliveries.Signalling:
        with _unusable_if_fails():
            if lacking := self.lacking(self.deployment):
                raise failures.Unusable(lacking)
            return deliveries.Signalling(
                transport=self.name,
                watched=False,
                credentials=_credentials(self.deployment),
                queue_id=self.deployment._get_zaqar_signal_queue_id(),
            )


class _TempURLPoll(_Transport):
    name = transport_names.TEMP_URL_POLL
    service = ('object-store', 'swift')

    def prepare(self, config_id: str) -> deliveries.Signalling:
        return self.sign(self.signer(), self.deployment.resource_id, config_id)

    def signer(self) -> keys.Signer:
        """Return what signs URLs of the stack's container.

        :raises Unusable: TempURLs are unusable.
        """
        hub = hub_for(self.deployment)
        refusal = hub.signing.refusal if self.is_one_of_many else None
        if refusal is not None:
            # To ask again would cost a token and a request.
            raise failures.Unusable(refusal) from refusal
        data = self.deployment.data()
        is_new = data.get(rows.CONTAINER_KEY) != hub.container
        if is_new:
            # Before the container is created, so that it always has an owner.
            self.deployment.data_set(rows.CONTAINER_KEY, hub.container)
        try:
            return hub.call(
                self.deployment.stack,
                lambda: hub.signing.signer(certain=is_new),
            )
        except errors.ServiceError as exc:
            if is_new:
                self._give_up(hub, exc)
            raise failures.Unusable(exc) from exc

    def sign(
        self, signer: keys.Signer, deployment_id: str, config_id: str
    ) -> deliveries.Signalling:
        """Return the URLs for one action of a deployment; send no request."""
        name = signal_names.signal(deployment_id, config_id)
        report_name = body.report_name(name)
        expires = int(signer.now()) + self._lifetime()
        return deliveries.Signalling(
            transport=self.name,
            object_name=name,
            url=signer.url(name, expires),
            report_name=report_name,
            report_url=signer.url(report_name, expires),
            control_url=signer.url(
                live.control_name(name), expires, method='GET'
            ),
            signer=signer,
        )

    def _give_up(self, hub: hubs.Hub, why: errors.ServiceError) -> None:
        """Forget a container that may not even have been made.

        One with anything in it stays: commands have made it, for runs.
        """
        if isinstance(why, errors.TokenRejected):
            # It was not, at least not for this one.
            self.deployment.data_delete(rows.CONTAINER_KEY)
            return
        try:
            hub.call(self.deployment.stack, lambda: self._forget(hub))
        except errors.ServiceError as exc:
            if _is_forbidden(exc):
                # Who may not make one has none.
                self.deployment.data_delete(rows.CONTAINER_KEY)
                return
            self.deployment.data_set(rows.CONTAINER_KEY, hub.container)
            LOG.info(
                '%(deployment)s: cannot clean up its objects in the object '
                'store now; its deletion cleans up: %(error)s',
                {'deployment': self.deployment.label, 'error': exc},
            )

    def _forget(self, hub: hubs.Hub) -> None:
        deployment = self.deployment
        # Before asking for others; see `sweeping`.
        deployment.data_delete(rows.CONTAINER_KEY)
        if not resources.container_in_use(
            deployment.context, hub.root_stack_id, hub.container
        ):
            hub.drop_empty_container()

    def _lifetime(self) -> int:
        """Return for how many seconds the URL must be valid."""
        options = cfg.CONF.heat_plugins
        asked: int | None = self.deployment.properties[
            self.deployment.SIGNAL_URL_LIFETIME
        ]
        if options.temp_url_lifetime_max is not None:
            asked = min(asked or 0, options.temp_url_lifetime_max)
        needed = (self.time_limit() or 0) + int(options.temp_url_margin)
        return max(needed, asked or 0)


def _credentials(
    deployment: heat_types.Deployment,
) -> abc.Mapping[str, Any]:
    """Return the credentials of the deployment's user."""
    _give_password(deployment)
    return deployment._get_heat_signal_credentials()


def _give_password(deployment: heat_types.Deployment) -> None:
    """Let the deployment's user log in.

    Heat makes a password only together with the user. A user that was made
    for a key pair, as ``trigger_url`` and CFN_SIGNAL need one, has none.
    """
    user_id = deployment._get_user_id()
    if user_id is None or deployment.password is not None:
        return
    keystone = deployment.keystone()
    password = password_gen.generate_openstack_password()
    # Without a domain of their own, users of stacks are the owner's.
    has_domain = keystone.stack_domain
    client = keystone.domain_admin_client if has_domain else keystone.client
    client.users.update(user_id, password=password)
    deployment.password = password


def _is_forbidden(exc: errors.ServiceError) -> bool:
    """Say whether an owner may have nothing in the object store at all."""
    kinds = (errors.Denied, errors.TempURLsUnusable)
    return isinstance(exc, kinds) and not exc.may_pass


@contextlib.contextmanager
def _unusable_if_fails() -> abc.Iterator[None]:
    """Turn what a service answers into a reason for AUTO to go on."""
    try:
        yield
    except failures.Unusable:
        raise
    except Exception as exc:
        # What it says is not ours: it may name URLs and what they carry.
        reason = type(exc).__name__
        if status := getattr(exc, 'http_status', None):
            reason = f'{reason} (HTTP {status})'
        LOG.debug('A signal transport cannot be used', exc_info=True)
        kind = errors.Unavailable if _may_pass(exc) else errors.ServiceError
        raise failures.Unusable(kind(reason)) from exc


def _may_pass(exc: Exception) -> bool:
    """Say whether a service could not be reached, or is out of order."""
    if isinstance(exc, (ks_exceptions.ConnectionError, ConnectionError)):
        return True
    # That is how keystoneauth calls it, and Zaqar's client.
    status = getattr(exc, 'http_status', None) or getattr(exc, 'code', None)
    return isinstance(status, int) and status >= 500


_TRANSPORTS: dict[str, type[_Transport]] = {
    cls.name: cls
    for cls in (_NoSignal, _CfnSignal, _HeatSignal, _ZaqarSignal, _TempURLPoll)
}
