# SPDX-License-Identifier: Apache-2.0
"""What Heat refuses of a plan, said without secrets and with the remedy.

Of a service that the cloud lacks, Heat names one type whose service it is, and
says so only as it deploys: its validation passes over it.
"""

from collections import abc
import contextlib
import shlex

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins.plans.content import nesting
from heat_plugins.plans.content import plans
from heat_plugins.plans.content import references
from heat_plugins.plans.deploy import plan_stacks
from heat_plugins.plans.parameters import secrecy

# Names of services in types whose resources some cloud may lack.
_SERVICES = frozenset(
    {
        'Aodh', 'Barbican', 'Blazar', 'Cinder', 'Designate', 'Glance',
        'Ironic', 'Magnum', 'Manila', 'Mistral', 'Neutron', 'Nova',
        'Octavia', 'Swift', 'Trove', 'Vitrage', 'Zaqar', 'Zun',
    }
)  # fmt: skip

# Heat's code for a type whose service is missing.
_UNAVAILABLE = 'HEAT-E99001'


@contextlib.contextmanager
def explained(
    stacks: plan_stacks.Stacks, plan: plans.Plan, content: references.Resolved
) -> abc.Iterator[None]:
    """Explain what Heat refuses of a content that is sent to it.

    :raises errors.Refused: the cloud lacks a type that the content needs.
    :raises errors.ServiceError: Heat refuses it for another reason.
    """
    try:
        with secrecy.guarding(content, plan.environment):
            yield
    except errors.OverHeatLimit as exc:
        message = str(exc)
        if exc.option == 'max_nested_stack_depth':
            message += f' to {nesting.depth(content)}'
        raise errors.OverHeatLimit(message, exc.status, exc.option) from exc
    except errors.ServiceError as exc:
        # Some of Heat's code finds no type, and says no more than that.
        if isinstance(exc, errors.NotFound) or _UNAVAILABLE in str(exc):
            raise errors.Refused(
                _explanation(str(exc), stacks, plan, content)
            ) from exc
        raise


def _explanation(
    message: str,
    stacks: plan_stacks.Stacks,
    plan: plans.Plan,
    content: references.Resolved,
) -> str:
    for conditional in (False, True):
        uses = nesting.uses(content, conditional=conditional)
        lacking = _lacking(stacks, uses)
        if lacking:
            return f'{message.rstrip(".")}. {_sentence(plan, lacking)}'
    return message


def warnings(
    stacks: plan_stacks.Stacks, plan: plans.Plan, content: references.Resolved
) -> tuple[str, ...]:
    """Foresee that Heat will refuse to deploy a plan, in one sentence."""
    lacking = _lacking(stacks, nesting.uses(content, conditional=False))
    if not lacking:
        return ()
    return (f'Heat cannot deploy this plan. {_sentence(plan, lacking)}',)


def _lacking(
    stacks: plan_stacks.Stacks, uses: abc.Iterable[nesting.Use]
) -> tuple[nesting.Use, ...]:
    """Return the resources whose types Heat does not offer to the user."""
    uses_of_services = tuple(use for use in uses if _is_of_service(use.type))
    if not uses_of_services:
        return ()
    try:
        offered = stacks.resource_types()
    except errors.ServiceError:
        return ()
    return tuple(use for use in uses_of_services if use.type not in offered)


def _is_of_service(type_: str) -> bool:
    root, _, rest = type_.partition('::')
    return root == 'OS' and rest.partition('::')[0] in _SERVICES


def _sentence(plan: plans.Plan, lacking: abc.Sequence[nesting.Use]) -> str:
    named = bounds.listed(
        [
            f'resource {use.resource.name} of '
            f'{use.resource.file or plan.environment.template} ({use.type})'
            for use in lacking
        ]
    )
    sentence = f'This cloud lacks the service for {named}'
    adding = frozenset[str]().union(*(use.environments for use in lacking))
    enabled = [path for path in plan.environment.enabled if path in adding]
    if not enabled:
        return f'{sentence}. No enabled environment adds these resources'
    options = bounds.listed(
        [f'--disable {shlex.quote(path)}' for path in enabled], between=' '
    )
    return (
        f'{sentence}. To leave out what needs it: openstack '
        f'deployment plan capability set {plan.name} {options}'
    )
