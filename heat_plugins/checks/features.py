# SPDX-License-Identifier: Apache-2.0
"""The features of this cloud: the first table of ``heat-plugins-status``.

A feature stands on parts of the cloud, such as its object store. Each part is
checked once, by the code of the check that reports on it in full. A feature
works if all of its parts do; else what is wrong with the first that does not
is the reason, and names the remedy.
"""

from collections import abc
import dataclasses
from typing import Any

from keystoneauth1 import session as ks_session
from oslo_config import cfg

from heat_plugins import errors
from heat_plugins import heat_values
from heat_plugins import registry
from heat_plugins import wording
from heat_plugins.checks import agents
from heat_plugins.checks import cloud
from heat_plugins.checks import engine
from heat_plugins.checks import mistral
from heat_plugins.checks import object_store
from heat_plugins.clients import mistral_api
from heat_plugins.runs.schedules import schedules

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


#: Checks a part of the cloud, with a session of a user who may own stacks.
_Check = abc.Callable[[cloud.CheckReport, Any], object]


def _served(*names: str) -> _Check:
    """Return the check that our classes serve resource types."""

    def check(report: cloud.CheckReport, session: object) -> None:
        engine.check_served(report, names)
        options = cfg.CONF.heat_plugins
        if schedules.TYPE in names and not options.rescue_interval:
            report.fail(f'No engine keeps schedules, as {engine.NO_SCANS}')

    return check


def _transport(name: str) -> _Check:
    """Return the check that a transport of signals can be used."""
    return lambda report, session: agents.check_transport(
        report, session, name
    )


def _mistral(
    *checks: abc.Callable[
        [cloud.CheckReport, mistral.Client, ks_session.Session], None
    ],
) -> _Check:
    """Return the check that Mistral answers, with further checks of it."""

    def check(report: cloud.CheckReport, session: ks_session.Session) -> None:
        client = mistral.connect(report, session, absent=report.lacks)
        for each in checks if client is not None else ():
            each(report, client, session)

    return check


def _check_preinstalled(
    report: cloud.CheckReport,
    client: mistral.Client,
    session: ks_session.Session,
) -> None:
    """Check that Mistral has the preinstalled workflows."""
    try:
        mistral_api.ask(client.workflows.get, PREINSTALLED)
    except errors.NotFound:
        report.fail(
            f'Mistral has no workflow {PREINSTALLED}: install the wheel of '
            'heat-plugins with its extra "mistral" in its environment, run '
            '"mistral-db-manage populate" and restart it. Without it, '
            'the commands for plans and nodes do the same.'
        )
    except errors.ServiceError as exc:
        report.unsure(f'Cannot read the workflows of Mistral: {exc}.')


#: The parts, each of which is checked once; `wording` has the features. Those
#: of heat-engine need no session, and what transports need of heat.conf is
#: checked without one, too.
_OF_ENGINE: abc.Mapping[str, _Check] = {
    'deployments': _served(*registry.DEPLOYMENT_TYPES),
    'workflows': _served('OS::Mistral::Workflow'),
    'schedules': _served(schedules.TYPE),
    'cron_triggers': _served('OS::Mistral::CronTrigger'),
    'tables': lambda report, session: engine.check_tables(report),
}
_OF_TRANSPORTS: abc.Mapping[str, _Check] = {
    'cfn': _transport(heat_values.CFN_SIGNAL),
    'heat': _transport('HEAT_SIGNAL'),
    'zaqar': _transport('ZAQAR_SIGNAL'),
}
_WITHOUT_SESSION = {**_OF_ENGINE, **_OF_TRANSPORTS}
_PARTS: abc.Mapping[str, _Check] = {
    **_WITHOUT_SESSION,
    'object_store': lambda report, session: object_store.check_temp_urls(
        report, object_store.connect(session), absent=report.lacks
    ),
    'mistral_answers': _mistral(),
    'triggers_fire': _mistral(
        lambda report, client, session: mistral.check_trust(report, session),
        lambda report, client, session: mistral.check_cron_triggers(
            report, client
        ),
    ),
    'preinstalled': _mistral(_check_preinstalled),
}


def features(
    session: ks_session.Session | None, why_not: str = ''
) -> list[Feature]:
    """Return whether each feature works with this heat.conf and cloud.

    :param session: of a user who may own stacks; without it, whatever needs
        the cloud is unknown.
    :param why_not: why there is no session; by default, that none was named.
    """
    reports = {name: report(name, session, why_not) for name in _PARTS}
    # Servers send results by either.
    store, cfn = reports['object_store'], reports['cfn']
    reports['results'] = cfn if store.failures else store
    if store.failures and cfn.failures:
        reports['results'] = cloud.CheckReport()
        for sentence in (*store.failures, *cfn.failures):
            reports['results'].fail(sentence)
    listed = []
    for name, needed in wording.FEATURES.items():
        parts = [reports[part] for part in needed]
        failures = next((each.failures for each in parts if each.failures), ())
        doubts = next((each.doubts for each in parts if each.doubts), ())
        listed.append(
            Feature(
                name=name,
                works=False if failures else None if doubts else True,
                reason=' '.join(failures or doubts),
            )
        )
    return listed


def report(
    name: str, session: ks_session.Session | None, why_not: str
) -> cloud.CheckReport:
    """Check a part of the cloud; see `features`."""
    checked = cloud.CheckReport()
    try:
        if session is not None or name in _WITHOUT_SESSION:
            _PARTS[name](checked, session)
    except cfg.Error as exc:
        checked = cloud.CheckReport()
        checked.fail(f'heat.conf is wrong: {exc}')
    if session is None and name not in _OF_ENGINE:
        checked.unsure(why_not or _CANNOT_ASK)
    return checked
