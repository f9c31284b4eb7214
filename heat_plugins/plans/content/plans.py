# SPDX-License-Identifier: Apache-2.0
"""A plan, as it is at one moment."""

from collections import abc
import dataclasses
import enum
import hashlib
import re

from heat_plugins import errors
from heat_plugins.content import storage
from heat_plugins.objectstore import stores
from heat_plugins.plans.content import environments

# Heat allows one to 255 characters, Ceph's gateway 3 to 255 for containers,
# and Mistral's environments 200, with the prefix of locks; see `plan_claims`.
_NAME = re.compile('[a-zA-Z][a-zA-Z0-9_.-]{2,179}')


# Prefix of the containers that serve all plans of a project.
_RESERVED = 'heat-plugins-'


#: The state of a plan whose container cannot be read.
UNKNOWN = 'unknown'


class PlanState(enum.Enum):
    """The state of a plan, in the metadata of its container."""

    CREATING = 'creating'
    READY = 'ready'
    DELETING = 'deleting'


@dataclasses.dataclass(frozen=True, kw_only=True)
class Summary:
    """A plan in a list of plans.

    :ivar state: a `PlanState`, or `UNKNOWN`.
    """

    name: str
    description: str
    created_at: str
    state: str = UNKNOWN


@dataclasses.dataclass(frozen=True, kw_only=True)
class Plan:
    """A plan that is ready.

    :ivar name: that of its container, too.
    :ivar rendered: whether its Jinja templates were rendered into it.
    :ivar entries: the objects in its container by their paths.
    """

    name: str
    rendered: bool
    environment: environments.PlanEnvironment
    entries: abc.Mapping[str, stores.ListedObject] = dataclasses.field(
        repr=False
    )

    @property
    def folders(self) -> frozenset[str]:
        """The folders at its top."""
        return frozenset(
            path.partition('/')[0] for path in self.entries if '/' in path
        )

    @property
    def content_hash(self) -> str:
        """A hash over all paths and contents, plan-environment.yaml's too."""
        digest = hashlib.sha256()
        for path in sorted(self.entries):
            digest.update(f'{path}\0{self.entries[path].etag}\0'.encode())
        return digest.hexdigest()


def check_name(name: str) -> str:
    """Check and return the name of a plan.

    :raises errors.Invalid: the name is not valid for a stack, a container and
        an environment of Mistral.
    """
    if name.startswith(_RESERVED):
        raise errors.Invalid(
            f'{name} cannot be the name of a plan: names that begin with '
            f'{_RESERVED} are reserved for containers with records about '
            'plans'
        )
    if not _NAME.fullmatch(name):
        raise errors.Invalid(
            f'{name[:300]!r} cannot be the name of a plan: a name has 3 to '
            '180 characters, begins with a letter, and has only English '
            'letters, digits, "_", "." and "-"'
        )
    return name


_STATE = 'x-container-meta-heat-plugins-plan'
_RENDERED = 'x-container-meta-heat-plugins-plan-rendered'


@dataclasses.dataclass(frozen=True, kw_only=True)
class Mark:
    """The metadata of a container about its plan.

    :ivar rendered: whether Jinja templates were rendered into it.
    """

    state: PlanState
    rendered: bool = False


class PlanContainer(storage.Container):
    """The container of a plan, or of a future plan."""

    def mark(self) -> Mark | None:
        """Return its mark; None if it has none, or is not there."""
        headers = self._headers() or {}
        try:
            state = PlanState(headers.get(_STATE, ''))
        except ValueError:
            return None
        return Mark(state=state, rendered=headers.get(_RENDERED) == 'true')

    def state(self) -> str:
        """Return the state of the plan of this container's name."""
        try:
            mark = self.mark()
        except errors.ServiceError:
            return UNKNOWN
        # A claim on the name comes before the container.
        return (mark.state if mark else PlanState.CREATING).value

    def make(self, mark: Mark) -> None:
        """Create the container, or replace its mark."""
        self._pool.insist(
            self._store.put_container,
            self._name,
            {
                _STATE: mark.state.value,
                _RENDERED: 'true' if mark.rendered else 'false',
            },
        )
