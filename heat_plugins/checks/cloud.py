# SPDX-License-Identifier: Apache-2.0
"""The report, the credentials and the endpoints of all checks."""

from collections import abc
import functools
import typing

from heat.common import config as heat_config
from keystoneauth1 import exceptions
from keystoneauth1 import session as ks_session
from openstack import config as os_config
from openstack import exceptions as os_exceptions
from oslo_config import cfg
from oslo_upgradecheck import upgradecheck

from heat_plugins import foreign
from heat_plugins import wording
from heat_plugins.clients import rest

_P = typing.ParamSpec('_P')


class CheckReport:
    """The sentences of a check, and the worst of their codes."""

    def __init__(self) -> None:
        self._code = upgradecheck.Code.SUCCESS
        self._sentences: list[str] = []
        #: What does not work, and the remedies.
        self.failures: list[str] = []
        #: What cannot be told from here.
        self.doubts: list[str] = []

    def good(self, sentence: str) -> None:
        self._say(upgradecheck.Code.SUCCESS, sentence)

    def unsure(self, sentence: str) -> None:
        """Add a sentence on a fact that this check cannot find out."""
        self.doubts.append(foreign.line(sentence))
        self.good(sentence)

    def doubt(self, sentence: str) -> None:
        """Add a warning on a part that may not work."""
        self.doubts.append(foreign.line(sentence))
        self.warn(sentence)

    def warn(self, sentence: str) -> None:
        """Add a sentence on a part that works, but not as it should."""
        self._say(upgradecheck.Code.WARNING, sentence)

    def fail(self, sentence: str) -> None:
        """Add a sentence on a part that does not work, with the remedy."""
        self.failures.append(foreign.line(sentence))
        self._say(upgradecheck.Code.FAILURE, sentence)

    def absent(self, service_type: str) -> None:
        """Say that this cloud lacks a service, which it may do without."""
        self.good(f'Not here: {wording.no_service(service_type)}.')

    def lacks(self, service_type: str) -> None:
        """Say that this cloud lacks a service without which this fails."""
        self.fail(f'{wording.no_service(service_type)}.')

    def _say(self, code: upgradecheck.Code, sentence: str) -> None:
        """Add a sentence to the report."""
        self._code = max(self._code, code)
        self._sentences.append(foreign.line(sentence))

    def result(self) -> upgradecheck.Result:
        """Return the report as oslo.upgradecheck prints it."""
        return upgradecheck.Result(self._code, ' '.join(self._sentences))


def reported(
    check: abc.Callable[typing.Concatenate[CheckReport, _P], object],
) -> abc.Callable[_P, upgradecheck.Result]:
    """Let a check that takes a report return its result instead."""

    @functools.wraps(check)
    def run(*args: _P.args, **kwargs: _P.kwargs) -> upgradecheck.Result:
        report = CheckReport()
        check(report, *args, **kwargs)
        return report.result()

    return run


#: Any of these means that there are credentials in the environment.
_VARIABLES = ('OS_CLOUD', 'OS_AUTH_URL', 'OS_AUTH_TYPE')


class NoCloudError(Exception):
    """The cloud cannot be asked; the message says why."""


def session(
    name: str | None, environment: abc.Mapping[str, str]
) -> ks_session.Session | None:
    """Return a session with a token, or None if no cloud was named.

    :param name: of a cloud in clouds.yaml; without it OS_CLOUD and the other
        OS_* variables say which one and who.
    :raises NoCloudError: its description is incomplete, or it gives no token.
    """
    if not name and not any(
        environment.get(variable) for variable in _VARIABLES
    ):
        return None
    try:
        region = os_config.OpenStackConfig().get_one(cloud=name)
        opened: ks_session.Session = region.get_session()
        opened.get_token()
    except (
        exceptions.ClientException,
        os_exceptions.SDKException,
        OSError,
    ) as exc:
        raise NoCloudError(
            f'Cannot get a token with --os-cloud or OS_*: {exc}'
        ) from exc
    return opened


def reach(session: ks_session.Session, client: str) -> rest.Cloud:
    """Return how heat-engine reaches a service.

    :param client: whose options of heat.conf name the interface.
    """
    return rest.Cloud(
        session,
        heat_config.get_client_option(client, 'endpoint_type'),
        cfg.CONF.region_name_for_services,
    )
