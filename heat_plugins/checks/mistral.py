# SPDX-License-Identifier: Apache-2.0
"""Whether Mistral is there, and whether it gets the trusts it needs."""

import contextlib
import datetime
from email import utils
import typing

from heat.common import config as heat_config
from keystoneauth1 import exceptions
from keystoneauth1 import identity
from keystoneauth1 import session as ks_session
from oslo_config import cfg
from oslo_upgradecheck import upgradecheck
import requests

from heat_plugins import bounds
from heat_plugins import foreign
from heat_plugins.checks import report
from heat_plugins.mistral.triggers import cron_triggers
from heat_plugins.mistral.triggers import schedule

SERVICE_TYPE = 'workflowv2'

# How late a trigger may fire: its periodic process may look seldom.
_OVERDUE = datetime.timedelta(minutes=5)

cfg.CONF.import_opt('reauthentication_auth_method', 'heat.common.config')


def redelegation() -> upgradecheck.Result:
    """Check whether Mistral can have trusts where Heat acts by a trust."""
    found = report.Report()
    always = cfg.CONF.reauthentication_auth_method == 'trusts'
    allowed = cfg.CONF.allow_trusts_redelegation
    if always and not allowed:
        found.warn(
            'No stack can have an OS::Mistral::CronTrigger: with '
            'reauthentication_auth_method = trusts Heat acts on all stacks '
            'by trusts, from which Mistral makes another only with '
            'allow_trusts_redelegation = true; both are in [DEFAULT].'
        )
    elif allowed and not always:
        found.warn(
            'allow_trusts_redelegation has no effect without '
            'reauthentication_auth_method = trusts.'
        )
    elif allowed:
        found.good('Trusts may be handed on to Mistral.')
        _check_roles(found)
    else:
        found.good(
            'Trusts are not handed on: users can make cron triggers, and '
            'updates that Heat begins itself, as by alarms, cannot.'
        )
    return found.result()


def _check_roles(found: report.Report) -> None:
    roles = cfg.CONF.trusts_delegated_roles
    if roles:
        found.warn(
            f'trusts_delegated_roles hands on only {", ".join(roles)}: a '
            'user with other roles gets no cron trigger; leave it empty.'
        )


def service(session: ks_session.Session) -> upgradecheck.Result:
    """Check that Mistral answers and Keystone gives trusts.

    :param session: whose user stands for the users of stacks.
    """
    found = report.Report()
    where: dict[str, typing.Any] = {
        'service_type': SERVICE_TYPE,
        'interface': heat_config.get_client_option('mistral', 'endpoint_type'),
        'region_name': cfg.CONF.region_name_for_services,
    }
    try:
        session.get(
            '/workflows?limit=1',
            endpoint_filter=where,
            **heat_config.get_ssl_options('mistral'),
        )
        found.good(f'Mistral answers at {session.get_endpoint(**where)}.')
    except exceptions.EndpointNotFound:
        found.warn(
            f'The catalogue has no Mistral ({SERVICE_TYPE}), so resources '
            'of the types OS::Mistral::* cannot be made.'
        )
        return found.result()
    except exceptions.ClientException as exc:
        found.fail(
            f'Mistral fails with {type(exc).__name__}: {exc}; see '
            '[clients_mistral] in heat.conf for its interface and '
            'certificates.'
        )
        return found.result()
    _check_trust(found, session)
    _check_cron_triggers(found, session, where)
    return found.result()


def _check_cron_triggers(
    found: report.Report,
    session: ks_session.Session,
    where: dict[str, typing.Any],
) -> None:
    """Tell by the trigger that is due first whether any fires.

    Mistral's API does not say which of its processes run. A periodic one sets
    the time of a trigger forward even if its workflow cannot be started.
    """
    try:
        answer = _first_due(session, where)
        rows = [] if answer is None else answer.json()['cron_triggers']
    except (exceptions.ClientException, KeyError, ValueError) as exc:
        found.warn(
            'Whether cron triggers fire is not known: Mistral fails with '
            f'{type(exc).__name__} as they are listed.'
        )
        return
    due = (
        cron_triggers.time(rows[0].get('next_execution_time'))
        if rows
        else None
    )
    if due is None:
        found.good(
            'Whether cron triggers fire is not known, as there is none.'
        )
    elif due + _OVERDUE > _time_of(answer):
        found.good('No cron trigger is overdue.')
    else:
        name = foreign.line(rows[0].get('name'), bounds.NAME)
        found.fail(
            f'No cron trigger fires: "{name}" was due at {due} UTC. Start a '
            'periodic process of Mistral ("mistral-server --server '
            'periodic"), or set run_in_api = true in [cron_trigger] of '
            'mistral.conf, which Mistral is about to take out; and see '
            'whether Mistral is in maintenance.'
        )


def _first_due(
    session: ks_session.Session, where: dict[str, typing.Any]
) -> requests.Response | None:
    """Ask for the trigger that is due first; None if that is forbidden."""
    for scope in ('&all_projects=true', ''):
        with contextlib.suppress(exceptions.Forbidden):
            return session.get(
                '/cron_triggers?limit=1&sort_keys=next_execution_time'
                f'&sort_dirs=asc&fields=name,next_execution_time{scope}',
                endpoint_filter=where,
                **heat_config.get_ssl_options('mistral'),
            )
    return None


def _time_of(answer: requests.Response | None) -> datetime.datetime:
    """Return the time by Mistral's clock, in UTC, as it writes times."""
    date = '' if answer is None else answer.headers.get('date', '')
    try:
        told = utils.parsedate_to_datetime(date)
    except ValueError:
        return schedule.now()
    return told.astimezone(datetime.UTC).replace(tzinfo=None)


def _check_trust(found: report.Report, session: ks_session.Session) -> None:
    """Make a trust as Mistral does for a trigger, and give it back."""
    auth = typing.cast(identity.BaseIdentityPlugin, session.auth)
    access = auth.get_access(session)
    expires = schedule.now() + datetime.timedelta(minutes=2)
    trust = {
        'trustor_user_id': access.user_id,
        # Whom it is for makes no difference to Keystone.
        'trustee_user_id': access.user_id,
        'project_id': access.project_id,
        'roles': [{'name': name} for name in access.role_names or ()],
        'impersonation': True,
        'expires_at': expires.strftime('%Y-%m-%dT%H:%M:%S.%fZ'),
    }
    keystone = {
        'service_type': 'identity',
        'interface': 'public',
        'version': '3',
    }
    try:
        answer = session.post(
            '/OS-TRUST/trusts', json={'trust': trust}, endpoint_filter=keystone
        )
        made = answer.json()['trust']['id']
        session.delete(f'/OS-TRUST/trusts/{made}', endpoint_filter=keystone)
    except exceptions.ClientException as exc:
        found.fail(
            'Keystone gives this user no trust, and so Mistral none for a '
            f'cron trigger: {exc}. It needs a password (no application '
            'credential), roles of its own in the project, and a policy for '
            'identity:create_trust that allows it.'
        )
    else:
        found.good('Keystone gives trusts to this user.')
