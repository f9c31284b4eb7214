# SPDX-License-Identifier: Apache-2.0
"""Keeping the secrets of a plan out of what is shown and said of it.

`SecretNames` decides which values are secret, for lists, differences, exports
and messages alike. Heat quotes values in some of its refusals, those of
passwords too; and a template hands the value of a hidden parameter down to
others, under names that are not hidden.

Passwords are generated here, each once: a service that has been given one
would not notice a new value, so what has a value keeps it.
"""

from collections import abc
import contextlib
import dataclasses
import posixpath
import re
import secrets
import string
from typing import Any, Self

from heat_plugins import errors
from heat_plugins import masking
from heat_plugins.content import texts
from heat_plugins.plans.content import environments
from heat_plugins.plans.content import links
from heat_plugins.plans.content import references
from heat_plugins.plans.parameters import parameters
from heat_plugins.plans.parameters import patterns

# Names of secrets that authors forget to hide, such as RabbitCookie, and of
# entries of maps. PasswordLength or KeyName is none, so a name ends so.
_SECRET = re.compile(
    r'(pass(word|wd|phrase)|secret|token|cookie|credential'
    r'|(private|secret|encryption|auth|api|fernet|signing|shared|ssl|tls'
    r'|activation)[_-]?key)s?[_-]?\d*$',
    re.IGNORECASE,
)

# Files whose parameters are all secret, such as default_passwords.yaml.
_SECRET_FILE = re.compile(
    r'(^|[_.-])(password|secret|credential)s?\.ya?ml$', re.IGNORECASE
)

# What a parameter of these types takes is no secret, whatever its name says.
_PLAIN = frozenset({'boolean', 'number'})

#: Where an environment sets parameters.
SECTIONS = ('parameter_defaults', 'parameters')

_Values = abc.Mapping[str, Any]


@dataclasses.dataclass(frozen=True, kw_only=True)
class SecretNames:
    """Which parameters are secret.

    :ivar secret: those that a template hides, that a file of passwords has,
        that the plan has a password for, or whose names say so.
    :ivar known: those that some template has.
    """

    secret: frozenset[str]
    known: frozenset[str]

    @classmethod
    def of(
        cls,
        content: references.Resolved,
        plan: environments.PlanEnvironment,
        others: abc.Iterable[abc.Mapping[str, _Values]] = (),
    ) -> Self:
        """Return what a plan, its templates and its environments say.

        :param others: parameters of templates that are not in the content.
        """
        secret = set(plan.passwords)
        known: set[str] = set()
        templates = [
            (path, parameters.declared(text))
            for path, text in {'': content.template, **content.files}.items()
            if links.is_template(text)
        ]
        for path, declared in (
            *templates,
            *(('', declarations) for declarations in others),
        ):
            known |= declared.keys()
            secret.update(
                name
                for name, declaration in declared.items()
                if parameters.is_hidden(declaration)
                or (
                    (_is_secret_file(path) or _says_so(name))
                    and _holds(declaration)
                )
            )
        for path, values in set_in(content):
            secret.update(
                name
                for name in values
                if _is_secret_file(path)
                or (name not in known and _says_so(name))
            )
        return cls(secret=frozenset(secret), known=frozenset(known))

    def may_be_seen(self, name: str) -> bool:
        """Say whether the value of a parameter that was set may be seen.

        Of one that no template has that is unknown.
        """
        return name in self.known and name not in self.secret

    def texts(self, values: _Values) -> abc.Iterator[str]:
        """Give the texts that must not be seen of what is set."""
        for name, value in values.items():
            if name in self.secret:
                yield from masking.texts(value)
            else:
                yield from masking.texts(list(_entries(value)))

    def without(self, values: _Values) -> tuple[dict[str, Any], set[str]]:
        """Return what may be seen of what is set, and the names of the rest.

        Entries of maps are named ``Map.key``.
        """
        shown: dict[str, Any] = {}
        left_out: set[str] = set()
        for name, value in values.items():
            if self.may_be_seen(name):
                shown[name] = without_entries(value, str(name), left_out)
            else:
                left_out.add(str(name))
        return shown, left_out


def masked(value: Any) -> Any:
    """Return a value with those entries of its maps masked that are secret."""
    if isinstance(value, list):
        return [masked(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: masking.MASK if _says_so(key) else masked(entry)
        for key, entry in value.items()
    }


def without_entries(value: Any, place: str, left_out: set[str]) -> Any:
    """Return a value without those entries, and add their places."""
    if isinstance(value, list):
        return [without_entries(item, place, left_out) for item in value]
    if not isinstance(value, dict):
        return value
    left_out.update(f'{place}.{key}' for key in value if _says_so(key))
    return {
        key: without_entries(entry, f'{place}.{key}', left_out)
        for key, entry in value.items()
        if not _says_so(key)
    }


def set_in(
    content: references.Resolved,
) -> abc.Iterator[tuple[str, _Values]]:
    """Give what each environment of a content sets, by its path."""
    for path in content.environments:
        read = texts.mapping(content.files[path], path)
        for section in SECTIONS:
            values = read.get(section)
            if isinstance(values, dict):
                yield path, values


def of_content(
    content: references.Resolved, plan: environments.PlanEnvironment
) -> frozenset[str]:
    """Return the texts sent to Heat that must not be seen.

    Among them is what was set in the plan for parameters that no template
    has.
    """
    names = SecretNames.of(content, plan)
    secrets = set(masking.texts(plan.passwords))
    for path, values in set_in(content):
        secrets.update(names.texts(values))
        if path == references.SET:
            secrets.update(
                masking.texts(
                    [values[name] for name in values.keys() - names.known]
                )
            )
    return frozenset(secrets)


@contextlib.contextmanager
def guarding(
    content: references.Resolved, plan: environments.PlanEnvironment
) -> abc.Iterator[None]:
    """Mask the secrets of what is sent in what an error of Heat's says."""
    try:
        yield
    except errors.ServiceError as exc:
        mask = masking.Mask(of_content(content, plan))
        masked = type(exc)(mask.text(str(exc)), exc.status)
        masked.__dict__.update(exc.__dict__)
        raise masked from None


def _says_so(name: object) -> bool:
    return _SECRET.search(str(name)) is not None


def _is_secret_file(path: str) -> bool:
    return path == references.PASSWORDS or bool(
        _SECRET_FILE.search(posixpath.basename(path))
    )


def _holds(parameter: _Values) -> bool:
    """Say whether a parameter, as Heat or a template has it, can be secret."""
    type_ = parameter.get('type', parameter.get('Type'))
    return str(type_).lower() not in _PLAIN


def _entries(value: Any) -> abc.Iterator[Any]:
    """Give the values of those entries of maps whose names say so."""
    if isinstance(value, dict):
        for key, entry in value.items():
            yield from [entry] if _says_so(key) else _entries(entry)
    elif isinstance(value, list):
        for entry in value:
            yield from _entries(entry)


_LENGTH = 32

# Nothing that a shell, a URL or a configuration file would read otherwise.
_ALPHABET = string.ascii_letters + string.digits


def passwords_wanted(template: str, where: str) -> tuple[str, ...]:
    """Return the parameters of a template that need a password.

    They are those that are hidden, are texts, and have no default. One that
    takes only certain texts is left to the user.
    """
    sections = dict(texts.mapping(template, where))
    parameters = texts.section(sections, 'parameters', where)
    tries = patterns.Tries()
    return tuple(
        str(name)
        for name, parameter in parameters.items()
        if isinstance(parameter, dict)
        and parameter.get('type') == 'string'
        and parameter.get('hidden') in (True, 'true')
        and 'default' not in parameter
        and _takes_any(parameter.get('constraints') or (), tries)
    )


def _takes_any(constraints: Any, tries: patterns.Tries) -> bool:
    """Say whether a password of ours is allowed, as far as can be told."""
    try:
        for constraint in constraints:
            length = constraint.get('length', {})
            if (
                'allowed_values' in constraint
                or 'custom_constraint' in constraint
                or int(length.get('max', _LENGTH)) < _LENGTH
                or int(length.get('min', _LENGTH)) > _LENGTH
                or not _matches(constraint.get('allowed_pattern', '.*'), tries)
            ):
                return False
    except (TypeError, ValueError, AttributeError):
        return False
    return True


def _matches(pattern: Any, tries: patterns.Tries) -> bool:
    try:
        return tries.matches(str(pattern), _generate())
    except errors.Invalid:
        return False


def fill_passwords(
    plan: environments.PlanEnvironment, names: abc.Iterable[str] = ()
) -> environments.PlanEnvironment:
    """Give a value to passwords that have none; return the rest as it is.

    :param names: of parameters that need one, as well as those that the
        plan has among its passwords without a value.
    """
    passwords: dict[str, Any] = dict(plan.passwords)
    for name in names:
        passwords.setdefault(name, None)
    for name, value in passwords.items():
        if value is None and name not in plan.parameter_defaults:
            passwords[name] = _generate()
    return dataclasses.replace(plan, passwords=passwords)


def with_passwords(
    plan: environments.PlanEnvironment, files: abc.Mapping[str, bytes]
) -> environments.PlanEnvironment:
    """Generate what a root template among files asks for, and nothing sets."""
    path = plan.template
    if path not in files:
        return plan
    root = texts.decode(files[path], path)
    return fill_passwords(plan, passwords_wanted(root, path))


def withhold_passwords(
    plan: environments.PlanEnvironment,
) -> environments.PlanEnvironment:
    """Return it with the passwords' names alone."""
    return dataclasses.replace(plan, passwords=dict.fromkeys(plan.passwords))


def _generate() -> str:
    return ''.join(secrets.choice(_ALPHABET) for _ in range(_LENGTH))
