# SPDX-License-Identifier: Apache-2.0
"""Check that Mistral answers, and that it gets the trusts it needs."""

from collections import abc
import contextlib
import datetime
from email import utils
from typing import Any, TypeAlias, cast

from heat.common import config as heat_config
from keystoneauth1 import exceptions
from keystoneauth1 import identity
from keystoneauth1 import session as ks_session
from oslo_config import cfg
import requests

from heat_plugins import errors
from heat_plugins.checks import cloud
from heat_plugins.clients import mistral_api
from heat_plugins.mistral import triggers

#: mistralclient's, which ships no types.
Client: TypeAlias = Any

cfg.CONF.import_opt('reauthentication_auth_method', 'heat.common.config')


@cloud.reported
def redelegation(
    report: cloud.CheckReport, session: ks_session.Session | None
) -> None:
    """Check whether Mistral can have trusts where Heat acts by a trust."""
    # If the catalogue cannot be read, the check of Mistral says why.
    with contextlib.suppress(errors.ServiceError):
        if session and not mistral_api.is_there(
            cloud.reach(session, 'mistral')
        ):
            report.absent(mistral_api.SERVICE_TYPE)
            return
    always = cfg.CONF.reauthentication_auth_method == 'trusts'
    allowed = cfg.CONF.allow_trusts_redelegation
    if always and not allowed:
        report.warn(
            'No stack can have an OS::Mistral::CronTrigger: with '
            'reauthentication_auth_method = trusts, Heat acts on all stacks '
            'by trusts, and Mistral can create another trust from these only '
            'with allow_trusts_redelegation = true. Both are in [DEFAULT].'
        )
    elif allowed and not always:
        report.warn(
            'allow_trusts_redelegation has no effect without '
            'reauthentication_auth_method = trusts.'
        )
    elif allowed:
        report.good("Mistral may create trusts from Heat's.")
        if roles := cfg.CONF.trusts_delegated_roles:
            report.warn(
                f'trusts_delegated_roles delegates only {", ".join(roles)}: '
                'users with other roles cannot create cron triggers; leave '
                'it empty.'
            )
    else:
        report.good(
            "Mistral may not create trusts from Heat's: users can create "
            'cron triggers, but updates that Heat starts itself, such as by '
            'alarms, cannot.'
        )


@cloud.reported
def service(report: cloud.CheckReport, session: ks_session.Session) -> None:
    """Check that Mistral answers and Keystone gives trusts.

    :param session: whose user stands for the users of stacks.
    """
    client = connect(report, session, absent=report.absent)
    if client is not None:
        report.good('Mistral answers.')
        check_trust(report, session)
        check_cron_triggers(report, client)


def connect(
    report: cloud.CheckReport,
    session: ks_session.Session,
    absent: abc.Callable[[str], None],
) -> Client | None:
    """Return a client of Mistral, or None if it does not answer.

    :param absent: takes the type of a service that the cloud does not have.
    """
    endpoint = cloud.reach(session, 'mistral')
    try:
        if mistral_api.is_there(endpoint):
            client = mistral_api.connect(
                endpoint, heat_config.get_ssl_options('mistral')
            )
            mistral_api.ask(client.workflows.list, limit=1)
            return client
        absent(mistral_api.SERVICE_TYPE)
    except errors.ServiceError as exc:
        report.fail(
            f'{exc}; see [clients_mistral] in heat.conf for the interface and '
            'the certificates.'
        )
    return None


def check_cron_triggers(report: cloud.CheckReport, client: Client) -> None:
    """Check by the trigger that is due first whether any fires.

    Mistral's API does not say which of its processes run.
    """
    try:
        answer = _first_due(client)
        rows = [] if answer is None else answer.json()['cron_triggers']
    except (errors.ServiceError, KeyError) as exc:
        report.warn(
            'Cannot check whether cron triggers fire, because Mistral does '
            f'not list them: {exc}'
        )
        return
    due = triggers.time(rows[0].get('next_execution_time')) if rows else None
    if answer is None or due is None:
        report.unsure(
            'Cannot check whether cron triggers fire, because there are none.'
        )
        return
    now = triggers.now()
    with contextlib.suppress(ValueError):
        # By Mistral's clock, in UTC, as it writes times.
        date = utils.parsedate_to_datetime(answer.headers.get('date', ''))
        now = date.astimezone(datetime.UTC).replace(tzinfo=None)
    if reason := triggers.none_fires(rows[0], now):
        report.fail(f'{reason}.')
    else:
        report.good('No cron trigger is overdue.')


def _first_due(client: Client) -> requests.Response | None:
    """Return the trigger that is due first; None if that is forbidden.

    The answer's own date tells Mistral's time.
    """
    for scope in ('&all_projects=true', ''):
        answer: requests.Response = mistral_api.ask(
            client.cron_triggers.http_client.get,
            '/cron_triggers?limit=1&sort_keys=next_execution_time'
            f'&sort_dirs=asc&fields=name,next_execution_time{scope}',
        )
        status = answer.status_code
        if status < 300:
            return answer
        if status != 403:
            raise mistral_api.answered(status, answer.content)
    return None


def check_trust(
    report: cloud.CheckReport, session: ks_session.Session
) -> None:
    """Create a trust as Mistral does for a trigger, and delete it."""
    auth = cast(identity.BaseIdentityPlugin, session.auth)
    access = auth.get_access(session)
    expires = triggers.now() + datetime.timedelta(minutes=2)
    trust = {
        'trustor_user_id': access.user_id,
        # The trustee makes no difference to Keystone.
        'trustee_user_id': access.user_id,
        'project_id': access.project_id,
        'roles': [{'name': name} for name in access.role_names or ()],
        'impersonation': True,
        'expires_at': expires.strftime('%Y-%m-%dT%H:%M:%S.%fZ'),
    }
    identity_service = {
        'service_type': 'identity',
        'interface': 'public',
        'version': '3',
    }
    try:
        answer = session.post(
            '/OS-TRUST/trusts',
            json={'trust': trust},
            endpoint_filter=identity_service,
        )
        made = answer.json()['trust']['id']
        session.delete(
            f'/OS-TRUST/trusts/{made}', endpoint_filter=identity_service
        )
    except exceptions.ClientException as exc:
        report.fail(
            'Keystone refuses this user a trust, so Mistral cannot create '
            f'cron triggers: {exc}. The user needs a password (not an '
            'application credential), roles of its own in the project, and a '
            'policy that permits identity:create_trust.'
        )
    else:
        report.good('Keystone gives trusts to this user.')
