# SPDX-License-Identifier: Apache-2.0
"""What heat-engine loads, and the secret that it signs TempURLs with."""

from collections import abc
import platform
import sys

from heat.common import exception
from heat.common import policy as heat_policy
from heat.engine import clients
from heat.engine import environment
from heat.engine import resources
from heat.engine import service
from oslo_config import cfg
from oslo_upgradecheck import upgradecheck

from heat_plugins import registry
from heat_plugins.checks import check_report
from heat_plugins.clients import heat_mistral
from heat_plugins.clients import heat_swift
from heat_plugins.deployments import signallers
from heat_plugins.engine import patches
from heat_plugins.engine import signing

CLIENTS = (heat_swift.CLIENT_NAME, heat_mistral.CLIENT_NAME)

# What registers operations and gives servers their runs.
_OF_RUNS = ('software_configs:create', 'software_deployments:create')

#: The fewest characters of a secret that cannot be guessed.
SECRET_LENGTH = 16

#: The Python versions, from the first to before the last, whose parser may
#: fail in one thread while another one parses: CPython's gh-106905.
FRAGILE = ((3, 11), (3, 12, 2))


def resource_types() -> upgradecheck.Result:
    """Check that each of our resource types is served by our class.

    It loads all plugins, as heat-engine does when it starts.
    """
    report = check_report.CheckReport()
    offer = registry.examine(cfg.CONF)
    try:
        origins = _origins(offer.classes)
    except Exception as exc:
        # One plugin that cannot be imported keeps heat-engine from starting.
        report.fail(
            'heat-engine cannot start, because loading its plugins fails '
            f'with {type(exc).__name__}: {exc}'
        )
        return report.result()
    _report_origins(report, origins)
    _report_left_out(report, offer.left_out)
    # Heat asks stevedore's manager for a client by its name.
    known = clients._mgr.names()  # noqa: SLF001
    missing = sorted(set(CLIENTS) - set(known))
    if missing:
        report.fail(
            f'Heat finds no client {" and ".join(missing)}; install '
            'heat-plugins again in the environment of heat-engine.'
        )
    return report.result()


def _origins(
    classes: abc.Mapping[str, type],
) -> dict[str | None, list[str]]:
    """Return who serves our types: None for this package, else a name."""
    served = resources.global_env().registry
    origins: dict[str | None, list[str]] = {}
    for name, ours in sorted(classes.items()):
        origins.setdefault(_origin(served, name, ours), []).append(name)
    return origins


def _origin(
    served: environment.ResourceRegistry, name: str, ours: type
) -> str | None:
    try:
        origin = served.get_resource_info(name).value
    except exception.EntityNotFound:
        return 'no plugin'
    if origin is ours:
        return None
    # Otherwise it is the name of a template.
    return origin.__module__ if isinstance(origin, type) else str(origin)


def _report_origins(
    report: check_report.CheckReport,
    origins: abc.Mapping[str | None, abc.Sequence[str]],
) -> None:
    ours = origins.get(None, ())
    others = {name: types for name, types in origins.items() if name}
    if not ours:
        report.fail(
            'heat-engine does not load heat-plugins: plugin_dirs in the '
            '[DEFAULT] section of heat.conf must name its directory; "python '
            '-m heat_plugins" prints the line.'
        )
        return
    report.good(f'heat-plugins serves {len(ours)} resource types.')
    for origin, types in others.items():
        report.fail(
            f'{", ".join(types)}: served by {origin}, not by heat-plugins; '
            'check plugin_dirs, and the files in environment_dir.'
        )


def _report_left_out(
    report: check_report.CheckReport,
    left_out: abc.Mapping[tuple[str, ...], registry.LoadError],
) -> None:
    disabled = cfg.CONF.heat_plugins.disabled_resource_types
    for types, reason in left_out.items():
        say = report.warn if set(types) & set(disabled) else report.fail
        say(f'{", ".join(types)}: left to Heat, because {reason}.')


def replaced() -> upgradecheck.Result:
    """Check which replacements of parts of Heat are in force.

    A heat-engine that starts now with these packages has the same.
    """
    report = check_report.CheckReport()
    for patch in patches.needed(registry.examine(cfg.CONF).classes.keys()):
        try:
            patch.probe()
        except patches.Unfit as exc:
            report.warn(f'{exc}, so {patch.without}.')
        else:
            report.good(f'{patch.name} is replaced: {patch.purpose}.')
    return report.result()


def secret() -> upgradecheck.Result:
    """Check what the keys of TempURLs are derived from."""
    report = check_report.CheckReport()
    own = cfg.CONF.heat_plugins.temp_url_secret
    name = '[heat_plugins] temp_url_secret'
    if not own:
        name = '[DEFAULT] auth_encryption_key'
    value = signing.temp_url_secret()
    remedy = (
        'set [heat_plugins] temp_url_secret to a long random text, the same '
        'for every heat-engine.'
    )
    if value is None:
        report.fail(
            'auth_encryption_key has the default value, which is public in '
            f"Heat's source; {remedy} Set auth_encryption_key, too: Heat "
            'encrypts passwords with it.'
        )
    elif len(value) < SECRET_LENGTH:
        report.warn(f'{name} has only {len(value)} characters; {remedy}')
    else:
        report.good(f'TempURL keys are derived from {name}.')
    return report.result()


def policy() -> upgradecheck.Result:
    """Check what Heat's policy permits users with only the role reader."""
    report = check_report.CheckReport()
    enforcer = heat_policy.Enforcer().enforcer
    reader = {'roles': ['reader'], 'project_id': 'x', 'is_admin': False}
    target = {'project_id': 'x'}
    wide = [
        name
        for name in (signallers.POLICY, *_OF_RUNS)
        if enforcer.authorize(name, target, reader, do_raise=False)
    ]
    if wide:
        report.warn(
            f'The policy of Heat permits users with only the role reader: '
            f'{", ".join(wide)}. So they can start actions on servers. '
            'Remove these rules from the policy file of Heat, and set '
            '[oslo_policy] enforce_new_defaults = true in heat.conf.'
        )
    else:
        report.good(
            'Users with only the role reader start no actions: heat-engine '
            f'asks the policy {signallers.POLICY} about each signal, although '
            'resource:signal permits them to send some.'
        )
    return report.result()


def has_native_threads() -> bool:
    """Say whether this Heat has threads of Python's, rather than green ones.

    Those of Heat 24 share one of Python's.
    """
    return hasattr(service, 'ThreadGroup')


def python() -> upgradecheck.Result:
    """Check whether stacks may fail at random with this Python."""
    report = check_report.CheckReport()
    first, fixed = FRAGILE
    version = platform.python_version()
    if not has_native_threads():
        report.good(
            f'Python {version}: this Heat has green threads, of which only '
            'one parses at a time.'
        )
        return report.result()
    if not first <= sys.version_info < fixed:
        report.good(f'Python {version} parses in several threads at a time.')
        return report.result()
    defect = (
        f'On Python {version}, stacks of many resources may fail at random '
        'with "SystemError: AST constructor recursion depth mismatch" '
        '(CPython gh-106905)'
    )
    remedy = 'run heat-engine on Python 3.12.2 or later.'
    if patches.is_fit('heat.engine.sync_point._str_unpack_tuple'):
        report.good(
            f"{defect}. heat-plugins serializes Heat's most frequent parsing; "
            f'to be safe, {remedy}'
        )
    else:
        report.warn(f'{defect}; {remedy}')
    return report.result()
