# SPDX-License-Identifier: Apache-2.0
"""Signal transports: how servers send the result of an action.

One class for each transport, found by name in `TRANSPORTS`. It says what it
needs, prepares that for the actions of a resource, and signs for each answer.
If it cannot be used it says why, and AUTO tries the next. For a new one:

- its class, before `TRANSPORTS`;
- its line in `TRANSPORTS`, where AUTO tries them in this order;
- its line in the choices of ``heat_plugins.config``, for templates that name
  none.
"""

from collections import abc
import contextlib
import functools
from typing import Any
import urllib.parse

from heat.common import password_gen
from heat.common.i18n import _
from heat.engine import function
from keystoneauth1 import exceptions as ks_exceptions
from keystoneclient.contrib.ec2 import utils as ec2_utils
from oslo_config import cfg

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins import heat_values
from heat_plugins import wording
from heat_plugins.deployments import deliveries
from heat_plugins.engine import heat_types
from heat_plugins.engine import hubs
from heat_plugins.engine import run_room
from heat_plugins.engine.database import in_process
from heat_plugins.engine.database import resources
from heat_plugins.engine.database import rows
from heat_plugins.signals import body
from heat_plugins.signals import live
from heat_plugins.signals import signal_names

LOG = foreign.logger(__name__)


class SignalTransport:
    """A transport, for the deployment or the group that uses it.

    :cvar name: in templates, and in what servers are given.
    :cvar service: the type of the service that it needs, and the client
        whose options in heat.conf say how to find that; or None.
    :cvar answers_by: how an answer comes.
    :cvar is_automatic: whether AUTO may choose it.
    :cvar serves_groups: whether one resource may sign for many servers, none
        of which has a user of its own. A group with another transport gets a
        nested stack.
    """

    name: str
    service: tuple[str, str] | None = None
    answers_by: deliveries.AnswersBy
    is_automatic = True
    serves_groups = False

    def __init__(self, resource: heat_types.Resource) -> None:
        self.resource = resource

    def lacking(self) -> str | None:
        """Return the part that this cloud lacks for it, or None."""
        if self.service is None:
            return None
        # Any client will do; this one is always there.
        heat = self.resource.client_plugin('heat')
        if heat.does_endpoint_exist(*self.service):
            return None
        return wording.no_service(self.service[0])

    def prepare(self, *, by_auto: bool) -> None:
        """Prepare for `sign`; this may send requests.

        :param by_auto: whether another may take its place.
        :raises deliveries.Unusable: that is not possible here.
        """

    def sign(self, answer: deliveries.Answer) -> deliveries.Signalling:
        """Return how a server sends an answer; this sends no request."""
        return self._signalling()

    def resume(self, row: heat_values.DeploymentRow) -> deliveries.Signalling:
        """Return how a server answers that has its config from before."""
        return self._signalling(
            url=row.inputs.get(deliveries.URL_INPUT),
            queue_id=row.inputs.get('deploy_queue_id'),
        )

    def poll(self, delivery: deliveries.Delivery) -> bytes | None:
        """Read the answer from a queue, for `deliveries.AnswersBy.QUEUE`.

        :returns: a signal; None if there is none, or its row has it already.
        """
        raise NotImplementedError

    def _signalling(self, **more: Any) -> deliveries.Signalling:
        """Return how a server is to answer, with what all transports have."""
        return deliveries.Signalling(
            transport=self.name,
            answers_by=self.answers_by,
            timeout=self.time_limit,
            **more,
        )

    @functools.cached_property
    def time_limit(self) -> int | None:
        """The seconds that an action may take; None for no limit."""
        limit: int = self.resource.stack.timeout_secs()
        own: int | None = self.resource.properties[self.resource.TIMEOUT]
        return min(limit, own or limit)


class TempURLPoll(SignalTransport):
    """The server PUTs it to a TempURL, for which the watcher polls."""

    name = heat_values.TEMP_URL_POLL
    service = ('object-store', 'swift')
    answers_by = deliveries.AnswersBy.OBJECT
    serves_groups = True

    def prepare(self, *, by_auto: bool) -> None:
        hub = hub_for(self.resource)
        refusal = hub.signing.refusal if by_auto else None
        if refusal is not None:
            # To ask again would cost a token and a request.
            raise deliveries.Unusable(refusal) from refusal
        former = self.resource.data().get(rows.CONTAINER_KEY)
        is_new = former != hub.container
        if is_new:
            # Before the container is created, so that it always has an owner.
            self.resource.data_set(rows.CONTAINER_KEY, hub.container)
        try:
            self._signer = hub.call(
                self.resource.stack,
                lambda: hub.signing.signer(certain=is_new),
            )
        except errors.ServiceError as exc:
            if is_new:
                self._give_up(hub, exc)
            raise deliveries.Unusable(exc) from exc

    def sign(self, answer: deliveries.Answer) -> deliveries.Signalling:
        signer, name = self._signer, answer.object_name
        report_name = body.report_name(name)
        options = cfg.CONF.heat_plugins
        asked: int | None = self.resource.properties[
            self.resource.SIGNAL_URL_LIFETIME
        ]
        if options.temp_url_lifetime_max is not None:
            asked = min(asked or 0, options.temp_url_lifetime_max)
        needed = (self.time_limit or 0) + int(options.temp_url_margin)
        expires = int(signer.now()) + max(needed, asked or 0)
        return self._signalling(
            object_name=name,
            url=signer.url(name, expires),
            report_name=report_name,
            report_url=signer.url(report_name, expires),
            control_url=signer.url(
                live.control_name(name), expires, method='GET'
            ),
            signer=signer,
        )

    def resume(self, row: heat_values.DeploymentRow) -> deliveries.Signalling:
        answer = deliveries.Answer.of_deployment(row.id, row.config.id)
        return self.sign(answer).of_before(row)

    def _give_up(self, hub: hubs.Hub, why: errors.ServiceError) -> None:
        """Forget a container that may not even have been made.

        One with anything in it stays, and one that runs need.
        """
        if isinstance(why, errors.Untouched):
            # It was not, at least not for this one.
            self.resource.data_delete(rows.CONTAINER_KEY)
            return

        def forget() -> None:
            """Forget the container, and delete it if nothing else needs it."""
            # Before asking for others; see `sweeping`.
            self.resource.data_delete(rows.CONTAINER_KEY)
            if not container_in_use(self.resource, hub.container):
                hub.drop_empty_container()

        try:
            hub.call(self.resource.stack, forget)
        except errors.ServiceError as exc:
            kinds = (errors.Denied, errors.TempURLsUnusable)
            if isinstance(exc, kinds) and not exc.may_pass:
                # Who may have nothing there has none.
                self.resource.data_delete(rows.CONTAINER_KEY)
                return
            self.resource.data_set(rows.CONTAINER_KEY, hub.container)
            LOG.info(
                '%(deployment)s: cannot clean up its objects in the object '
                'store now; its deletion cleans up: %(error)s',
                {'deployment': self.resource.label, 'error': exc},
            )


class ZaqarSignal(SignalTransport):
    """The server sends it to a Zaqar queue, which Heat reads."""

    name = 'ZAQAR_SIGNAL'
    service = ('messaging', 'zaqar')
    answers_by = deliveries.AnswersBy.QUEUE

    def lacking(self) -> str | None:
        if self.resource.client_plugin('zaqar') is None:
            return str(_('python-zaqarclient is not installed'))
        return super().lacking()

    def prepare(self, *, by_auto: bool) -> None:
        with _unusable_if_fails():
            if lacking := self.lacking():
                raise deliveries.Unusable(lacking)
            self._credentials = _credentials(self.resource)
            self._queue_id = self.resource._get_zaqar_signal_queue_id()

    def sign(self, answer: deliveries.Answer) -> deliveries.Signalling:
        return self._signalling(
            credentials=self._credentials, queue_id=self._queue_id
        )

    def poll(self, delivery: deliveries.Delivery) -> None:
        """Let Heat read the queue: it stores what lies there in the row."""
        # Heat settles the row by what lies in the queue.
        in_process.take_queued(self.resource.context, delivery.deployment_id)


class CfnSignal(SignalTransport):
    """The server POSTs it to a URL of heat-api-cfn, signed with a key pair.

    Keystone refuses a signature with a Timestamp after ``[credential]
    auth_ttl``, 15 minutes by default. So it has none, and is valid until its
    key pair is deleted with the deployment. Parameters that name the answer
    give each a signature of its own; see `signals.presigned`.
    """

    name = heat_values.CFN_SIGNAL
    service = ('cloudformation', 'heat')
    answers_by = deliveries.AnswersBy.ROW
    serves_groups = True

    def lacking(self) -> str | None:
        if cfg.CONF.heat_waitcondition_server_url:
            # Heat makes its URLs of that.
            return None
        return super().lacking()

    def prepare(self, *, by_auto: bool) -> None:
        with _unusable_if_fails():
            self._url = self.resource._get_ec2_signed_url(never_expire=True)
            if not self._url:
                raise deliveries.Unusable(
                    _(
                        "Heat cannot create a key pair; heat-engine's log "
                        'says why'
                    )
                )
            self._secret = self.resource.data()['secret_key']

    def sign(self, answer: deliveries.Answer) -> deliveries.Signalling:
        parts = urllib.parse.urlsplit(self._url)
        query = dict(urllib.parse.parse_qsl(parts.query), **answer.query)
        del query['Signature']
        return self._signalling(
            verb='POST', url=signed(self._url, query, self._secret)
        )


def signed(url: str, query: abc.Mapping[str, str], secret: str) -> str:
    """Return a URL of heat-api-cfn with parameters, signed for a POST."""
    parts = urllib.parse.urlsplit(url)
    request = {
        'verb': 'POST',
        'host': parts.netloc.lower(),
        'path': urllib.parse.unquote(parts.path),
        'params': dict(query),
    }
    signature = ec2_utils.Ec2Signer(secret).generate(request)
    text = urllib.parse.urlencode({**query, 'Signature': signature})
    return parts._replace(query=text).geturl()


class HeatSignal(SignalTransport):
    """The server signals the resource over heat-api, as a user of its own."""

    name = 'HEAT_SIGNAL'
    answers_by = deliveries.AnswersBy.ROW

    def prepare(self, *, by_auto: bool) -> None:
        with _unusable_if_fails():
            self._credentials = _credentials(self.resource)

    def sign(self, answer: deliveries.Answer) -> deliveries.Signalling:
        return self._signalling(credentials=self._credentials)


class NoSignal(SignalTransport):
    """The server sends none; its action is complete once it is delivered."""

    name = heat_values.NO_SIGNAL
    answers_by = deliveries.AnswersBy.NONE
    is_automatic = False
    serves_groups = True

    @functools.cached_property
    def time_limit(self) -> None:
        """No engine waits for it."""


#: By name, in the order in which AUTO tries them.
TRANSPORTS: dict[str, type[SignalTransport]] = {
    kind.name: kind
    for kind in (TempURLPoll, ZaqarSignal, CfnSignal, HeatSignal, NoSignal)
}


def takes_signals(name: str | None) -> bool:
    """Say whether results by a transport are signals of the resource."""
    kind = TRANSPORTS.get(str(name))
    return kind is not None and kind.answers_by is deliveries.AnswersBy.ROW


def of_auto(
    resource: heat_types.Resource, *, is_group: bool, is_new: bool = False
) -> list[type[SignalTransport]]:
    """Return the transports that AUTO tries, in this order.

    :param is_group: whether the resource has many servers.
    :param is_new: whether a group may yet get a nested stack. It does if the
        first that this cloud has serves no groups.
    """
    kinds = [each for each in TRANSPORTS.values() if each.is_automatic]
    if not is_group:
        return kinds
    chosen = []
    for kind in kinds:
        if kind.serves_groups:
            chosen.append(kind)
        elif is_new and not lacks(resource, kind.name):
            break
    return chosen


def usable(
    resource: heat_types.Resource,
    name: str,
    *,
    is_group: bool = False,
    is_new: bool = False,
) -> SignalTransport:
    """Return a transport by its name, or for AUTO the first usable one.

    :param resource: one with an ID in the database.
    :param is_group: see `of_auto`, as for the next one.
    :raises deliveries.NoAnswer: it cannot be used, or under AUTO none.
    :raises errors.Unavailable: the same, but one of them may be usable later.
    """
    by_auto = name == heat_values.AUTO
    candidates = (
        [TRANSPORTS[name]]
        if not by_auto
        else (of_auto(resource, is_group=is_group, is_new=is_new))
    )
    tried: list[str] = []
    may_pass = False
    for kind in candidates:
        transport = kind(resource)
        try:
            transport.prepare(by_auto=by_auto)
        except deliveries.Unusable as exc:
            may_pass |= exc.may_pass
            tried.append(f'{kind.name}: {exc}')
            continue
        if tried:
            LOG.info(
                '%(deployment)s uses %(chosen)s; these transports are '
                'unavailable: %(tried)s',
                {
                    'deployment': resource.label,
                    'chosen': kind.name,
                    'tried': '. '.join(tried),
                },
            )
        return transport
    error = errors.Unavailable if may_pass else deliveries.NoAnswer
    raise error(f'The signal transport cannot be used. {". ".join(tried)}')


def check(deployment: heat_types.Resource, servers: str) -> None:
    """Refuse a transport that this cloud cannot have.

    What cannot be told, such as while Keystone is unavailable, is not refused.
    Nor is the server of a deployment that exists.

    :param deployment: a deployment of a template, or a group of some.
    :param servers: the property that names its server, or servers.
    :raises exception.StackValidationFailed: it names one.
    """
    name = deliveries.Terms(deployment.properties).transport
    if name != heat_values.AUTO and (lacking := lacks(deployment, name)):
        raise heat_types.invalid(
            deployment,
            f'{name} cannot be used; AUTO uses a transport that this cloud '
            f'has. {lacking}',
            deployment.SIGNAL_TRANSPORT,
        )
    for server in function.dependencies(deployment.properties.data[servers]):
        # Other resources may stand for a server.
        given = deployment.stack[server.name].properties.data
        if given.get('software_config_transport') != 'POLL_TEMP_URL':
            continue
        # An update continues with what former releases have created.
        lacking = lacks(deployment, TempURLPoll.name)
        if lacking and not resources.exists(deployment):
            raise heat_types.invalid(
                deployment,
                f'{server.name} has POLL_TEMP_URL, which cannot be used; '
                f'POLL_SERVER_CFN needs no object store. {lacking}',
                servers,
            )


def lacks(resource: Any, name: str) -> str | None:
    """Return the lacking part for a transport; None if none is known.

    :param resource: anything with clients of the project.
    :param name: of a transport, but AUTO.
    """
    try:
        return TRANSPORTS[name](resource).lacking()
    except Exception:
        LOG.debug('Cannot check the signal transports', exc_info=True)
        return None


def refusal_of_runs(resource: Any) -> str | None:
    """Return why this cloud can start no run; None if nothing is known.

    :param resource: anything with clients of the project.
    """
    kinds = (heat_values.TEMP_URL_POLL, heat_values.CFN_SIGNAL)
    if not all(lacks(resource, name) for name in kinds):
        return None
    return (
        'Servers cannot send the results of runs; ask an operator to add one '
        f'of these services. {wording.no_service(*wording.RESULTS)}'
    )


def container_in_use(deployment: heat_types.Resource, container: str) -> bool:
    """Say whether a deployment, or a run, has a URL to a container."""
    # Not always that of its stack: an adopted one has that of its former life.
    root_stack_id = container.removeprefix(signal_names.container(''))
    return resources.container_in_use(
        deployment.context, root_stack_id, container
    ) or bool(run_room.room().needs_container(deployment, root_stack_id))


def root_stack_id(deployment: heat_types.Resource) -> str:
    """Return the id of the stack at the root of a deployment's."""
    return str(deployment.root_stack_id or deployment.stack.root_stack_id())


def hub_for(deployment: heat_types.Resource) -> hubs.Hub:
    """Return the hub of a deployment's root stack."""
    return hubs.hub_for(deployment.stack, root_stack_id(deployment))


def _credentials(
    deployment: heat_types.Resource,
) -> abc.Mapping[str, Any]:
    """Return the credentials with which a deployment's user can log in.

    Heat makes a password only together with the user. A user that was made
    for a key pair, as ``trigger_url`` and CFN_SIGNAL need one, has none.
    """
    user_id = deployment._get_user_id()
    if user_id is not None and deployment.password is None:
        keystone = deployment.keystone()
        password = password_gen.generate_openstack_password()
        # Without a domain of their own, users of stacks are the owner's.
        has_domain = keystone.stack_domain
        client = (
            keystone.domain_admin_client if has_domain else keystone.client
        )
        client.users.update(user_id, password=password)
        deployment.password = password
    return dict(deployment._get_heat_signal_credentials())


@contextlib.contextmanager
def _unusable_if_fails() -> abc.Iterator[None]:
    """Turn a service's failure into a reason for AUTO to try the next."""
    try:
        yield
    except deliveries.Unusable:
        raise
    except Exception as exc:
        # What it says is not ours: it may name URLs and what they carry.
        reason = type(exc).__name__
        if status := getattr(exc, 'http_status', None):
            reason = f'{reason} (HTTP {status})'
        LOG.debug('A signal transport cannot be used', exc_info=True)
        # Zaqar's client calls it so.
        status = status or getattr(exc, 'code', None)
        is_outage = isinstance(
            exc, (ks_exceptions.ConnectionError, ConnectionError)
        ) or (isinstance(status, int) and status >= 500)
        kind = errors.Unavailable if is_outage else errors.ServiceError
        raise deliveries.Unusable(kind(reason)) from exc
