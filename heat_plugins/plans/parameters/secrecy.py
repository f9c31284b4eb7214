# SPDX-License-Identifier: Apache-2.0
"""Keeping the secrets of a plan out of what is shown and said of it.

Heat quotes values in some of its refusals, those of passwords too; and a
template hands the value of a hidden parameter down to others, under names
that are not hidden.
"""

from collections import abc
import contextlib

from heat_plugins import errors
from heat_plugins import masking
from heat_plugins.content import texts as texts_module
from heat_plugins.plans.content import links
from heat_plugins.plans.content import plan_environment as environments
from heat_plugins.plans.content import references
from heat_plugins.plans.parameters import parameters


def values(
    environment: environments.PlanEnvironment,
    hidden: abc.Collection[str],
) -> frozenset[str]:
    """Return the texts of a plan that must not be seen."""
    found = set(masking.texts(environment.passwords))
    for section in (
        environment.parameter_defaults,
        environment.derived_parameters,
    ):
        for name, value in section.items():
            if name in hidden:
                found.update(masking.texts(value))
    return frozenset(found)


def hidden_in(
    content: references.Resolved,
) -> tuple[frozenset[str], frozenset[str]]:
    """Return the names of parameters that some template hides, and of all."""
    hidden: set[str] = set()
    known: set[str] = set()
    for text in (content.template, *content.files.values()):
        if not links.is_template(text):
            continue
        for name, parameter in parameters.declared(text).items():
            known.add(name)
            if parameters.is_hidden(parameter):
                hidden.add(name)
    return frozenset(hidden), frozenset(known)


def of_content(content: references.Resolved) -> frozenset[str]:
    """Return the texts sent to Heat that must not be seen.

    Those are what was generated, and what is set for parameters that some
    template hides, or for some that were set in the plan and that no template
    has: whether those may be seen is unknown.
    """
    hidden, known = hidden_in(content)
    found: set[str] = set()
    for key in content.environments:
        read = texts_module.mapping(content.files[key], key)
        for section in ('parameter_defaults', 'parameters'):
            for name, value in (read.get(section) or {}).items():
                if (
                    name in hidden
                    or key == references.PASSWORDS
                    or (key == references.SET and name not in known)
                ):
                    found.update(masking.texts(value))
    return frozenset(found)


@contextlib.contextmanager
def guarding(content: references.Resolved) -> abc.Iterator[None]:
    """Mask the secrets of what is sent in what an error of Heat's says."""
    try:
        yield
    except errors.ServiceError as exc:
        mask = masking.Mask(of_content(content))
        masked = type(exc)(mask.text(str(exc)), exc.status)
        masked.__dict__.update(exc.__dict__)
        raise masked from None
