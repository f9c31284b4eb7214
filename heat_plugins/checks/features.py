# SPDX-License-Identifier: Apache-2.0
"""What works on this cloud: the first table of ``heat-plugins-status``.

A feature stands on parts of the cloud, such as its object store. Each part is
checked once, by the code of the check that reports on it in full. A feature
works if all of its parts do; else what is wrong with the first that does not
is the reason, and names the remedy.
"""

from collections import abc
import dataclasses
import functools

from keystoneauth1 import session as ks_session
from oslo_config import cfg

from heat_plugins import errors
from heat_plugins import registry
from heat_plugins.checks import agents
from heat_plugins.checks import cloud
from heat_plugins.checks import engine
from heat_plugins.checks import mistral
from heat_plugins.checks import object_store
from heat_plugins.clients import mistral_api
from heat_plugins.runs import schedule_reading
from heat_plugins.signals import transport_names

#: A workflow of ours that Mistral has once its database was populated.
PREINSTALLED = 'plan.deploy'

_CANNOT_ASK = 'Not checked: this needs --os-cloud or OS_*.'


@dataclasses.dataclass(frozen=True, kw_only=True)
class Feature:
    """Something that users do with heat-plugins.

    :ivar works: None if that cannot be told from here.
    :ivar reason: why it does not work, with the remedy, or why that is not
        known; empty if it works.
    """

    name: str
    works: bool | None
    reason: str = ''


class Parts:
    """The parts of the cloud that features stand on, each checked once.

    :param session: of a user who may own stacks; None checks only heat.conf
        and the plugins.
    :param why_not: why there is no session.
    """

    def __init__(
        self, session: ks_session.Session | None, why_not: str
    ) -> None:
        self._session = session
        self._why_not = why_not

    @functools.cached_property
    def deployments(self) -> cloud.CheckReport:
        return self._types(registry.DEPLOYMENT_TYPES)

    @functools.cached_property
    def workflows(self) -> cloud.CheckReport:
        return self._types(('OS::Mistral::Workflow',))

    @functools.cached_property
    def schedules(self) -> cloud.CheckReport:
        report = self._types((schedule_reading.TYPE,))
        if not cfg.CONF.heat_plugins.rescue_interval:
            report.fail(f'No engine keeps schedules, as {engine.NO_SCANS}')
        return report

    @functools.cached_property
    def cron_triggers(self) -> cloud.CheckReport:
        return self._types(('OS::Mistral::CronTrigger',))

    def _types(self, names: abc.Iterable[str]) -> cloud.CheckReport:
        report = cloud.CheckReport()
        engine.check_served(report, names)
        return report

    @functools.cached_property
    def object_store(self) -> cloud.CheckReport:
        def check(
            report: cloud.CheckReport, session: ks_session.Session
        ) -> None:
            transport = object_store.connect(session)
            object_store.check_temp_urls(report, transport)

        return self._ask(check)

    @functools.cached_property
    def cfn(self) -> cloud.CheckReport:
        return self._transport(transport_names.CFN_SIGNAL)

    @functools.cached_property
    def heat(self) -> cloud.CheckReport:
        return self._transport(transport_names.HEAT_SIGNAL)

    @functools.cached_property
    def zaqar(self) -> cloud.CheckReport:
        return self._transport(transport_names.ZAQAR_SIGNAL)

    def _transport(self, name: str) -> cloud.CheckReport:
        report = cloud.CheckReport()
        agents.check_transport(report, self._session, name)
        if self._session is None:
            report.unsure(self._why_not)
        return report

    @functools.cached_property
    def mistral_answers(self) -> cloud.CheckReport:
        return self._ask_mistral(lambda report, client, session: None)

    @functools.cached_property
    def triggers_fire(self) -> cloud.CheckReport:
        def check(
            report: cloud.CheckReport,
            client: mistral.Client,
            session: ks_session.Session,
        ) -> None:
            mistral.check_trust(report, session)
            mistral.check_cron_triggers(report, client)

        return self._ask_mistral(check)

    @functools.cached_property
    def preinstalled(self) -> cloud.CheckReport:
        return self._ask_mistral(_check_preinstalled)

    def _ask_mistral(
        self,
        check: abc.Callable[
            [cloud.CheckReport, mistral.Client, ks_session.Session],
            None,
        ],
    ) -> cloud.CheckReport:
        def connect(
            report: cloud.CheckReport, session: ks_session.Session
        ) -> None:
            client = mistral.connect(
                report,
                session,
                absent=report.fail,
            )
            if client is not None:
                check(report, client, session)

        return self._ask(connect)

    def _ask(
        self,
        check: abc.Callable[[cloud.CheckReport, ks_session.Session], None],
    ) -> cloud.CheckReport:
        report = cloud.CheckReport()
        if self._session is None:
            report.unsure(self._why_not)
        else:
            check(report, self._session)
        return report


def _check_preinstalled(
    report: cloud.CheckReport,
    client: mistral.Client,
    session: ks_session.Session,
) -> None:
    try:
        mistral_api.ask(client.workflows.get, PREINSTALLED)
    except errors.NotFound:
        report.fail(
            f'Mistral has no workflow {PREINSTALLED}: install the wheel of '
            'heat-plugins with its extra "mistral" in its environment, run '
            '"mistral-db-manage populate" and restart it. Without it, '
            'commands with --local do the same.'
        )
    except errors.ServiceError as exc:
        report.unsure(f'Cannot read the workflows of Mistral: {exc}.')


#: Features, and the parts that each stands on.
_FEATURES = {
    'Deployments by TEMP_URL_POLL': ('deployments', 'object_store'),
    'Deployments by CFN_SIGNAL': ('deployments', 'cfn'),
    'Deployments by HEAT_SIGNAL': ('deployments', 'heat'),
    'Deployments by ZAQAR_SIGNAL': ('deployments', 'zaqar'),
    'Runs and operations': ('deployments', 'object_store'),
    'Schedules': ('schedules', 'object_store'),
    'Actions by webhook': ('deployments', 'object_store', 'cfn'),
    'Workflows': ('workflows', 'mistral_answers'),
    'Cron triggers': ('cron_triggers', 'triggers_fire'),
    'Plans': ('object_store',),
    'Plans by workflow': ('object_store', 'preinstalled'),
}


def features(
    session: ks_session.Session | None, why_not: str = _CANNOT_ASK
) -> list[Feature]:
    """Return what works with this heat.conf and cloud, and what does not.

    :param session: of a user who may own stacks; without it, whatever needs
        the cloud is unknown.
    :param why_not: why there is no session.
    """
    parts = Parts(session, why_not)
    return [
        _feature(name, [_checked(parts, part) for part in needed])
        for name, needed in _FEATURES.items()
    ]


def _checked(parts: Parts, part: str) -> cloud.CheckReport:
    try:
        report: cloud.CheckReport = getattr(parts, part)
    except cfg.Error as exc:
        report = cloud.CheckReport()
        report.fail(f'heat.conf is wrong: {exc}')
    return report


def _feature(name: str, parts: abc.Sequence[cloud.CheckReport]) -> Feature:
    for part in parts:
        if part.failures:
            reason = ' '.join(part.failures)
            return Feature(name=name, works=False, reason=reason)
    for part in parts:
        if part.doubts:
            reason = ' '.join(part.doubts)
            return Feature(name=name, works=None, reason=reason)
    return Feature(name=name, works=True)
