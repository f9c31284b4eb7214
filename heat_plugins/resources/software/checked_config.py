# SPDX-License-Identifier: Apache-2.0
"""What our config types add to Heat's: a config is checked before its use."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from heat.engine import function
from heat.engine import resource
from oslo_config import cfg

from heat_plugins import bounds
from heat_plugins import config
from heat_plugins import foreign
from heat_plugins.configs import config_checking
from heat_plugins.engine import heat_types

LOG = foreign.logger(__name__)

config.register_opts(cfg.CONF)

_LOGGED = {
    config_checking.Severity.WARNING: LOG.warning,
    config_checking.Severity.NOTE: LOG.debug,
}


if TYPE_CHECKING:
    _Resource: TypeAlias = resource.Resource
else:
    _Resource = object


class CheckedConfig(_Resource):
    """Mixed into a config type of Heat, in front of it."""

    def validate(self) -> None:
        """Validate as Heat does, then check what the template says.

        :raises StackValidationFailed: naming everything that cannot work.
        """
        super().validate()
        self.check_config()

    def check_config(self) -> None:
        """Log what is doubtful in the template and refuse what is wrong.

        :raises StackValidationFailed: naming everything that cannot work.
        """
        problems = config_checking.check(
            **self.described(), known_hooks=cfg.CONF.heat_plugins.known_hooks
        )
        for severity, log in _LOGGED.items():
            texts = [str(p) for p in problems if p.severity is severity]
            if texts:
                log(
                    '%(type)s "%(resource)s" in stack "%(stack)s": %(texts)s',
                    {
                        'type': self.type(),
                        'resource': self.name,
                        'stack': self.stack.name,
                        'texts': bounds.listed(texts, between=' '),
                    },
                )
        errors = [
            str(p)
            for p in problems
            if p.severity is config_checking.Severity.ERROR
        ]
        if errors:
            raise heat_types.invalid(self, bounds.listed(errors, between=' '))

    def described(self) -> dict[str, Any]:
        """Return the config as the template has it, for checking.

        Heat's resolved properties do not do: there, what another resource
        has yet to supply is an empty text or list, or the default.
        """
        properties = self.known_properties()
        return {
            'group': properties.get(self.GROUP, config_checking.UNGROUPED),
            'config': properties.get(self.CONFIG),
            'inputs': properties.get(self.INPUTS),
            'outputs': properties.get(self.OUTPUTS),
        }

    def known_properties(self) -> Any:
        """Return the properties, with UNKNOWN for what cannot be told."""
        return self._known(self.properties.data)

    def _known(self, value: Any) -> Any:
        """Resolve what can be, and leave out what a condition leaves out."""
        if isinstance(value, function.Function):
            # Without strict validation, as in a nested stack, parameters
            # stand for what is not there yet as well.
            if not self.stack.strict_validate or any(
                needed.action == resource.Resource.INIT
                for needed in function.dependencies(value)
            ):
                return config_checking.UNKNOWN
            resolved = function.resolve(value, nullable=True)
            return config_checking.UNKNOWN if resolved is None else resolved
        if isinstance(value, Mapping):
            known = ((k, self._known(v)) for k, v in value.items())
            return {k: v for k, v in known if v is not Ellipsis}
        if isinstance(value, Iterable) and not isinstance(value, str):
            each = [self._known(v) for v in value]
            return [v for v in each if v is not Ellipsis]
        return value
