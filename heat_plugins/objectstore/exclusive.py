# SPDX-License-Identifier: Apache-2.0
"""Choose one winner; no object store creates objects exclusively.

Swift honours ``If-None-Match: *`` only by what one of its proxies sees;
Ceph's gateway ignores it and overwrites. So each candidate announces itself
with an object of its own and then reads a fresh listing of all announcements:

- If a candidate has won already, the others give way.
- If several candidates are undecided, the first by name wins, but only after
  the others have given way or won: they may have read their listings before
  its announcement.
- A candidate whose last listing is older than `PATIENCE` seconds reads
  another. After `_LOOKS` of those it gives way. So a candidate waits at
  most `PATIENCE` for one that has died.

These windows remain, for this and for what builds on it (`lease`, claims of
runs, names and locks of plans without Mistral):

- a listing that does not show an announcement made before it: Swift's may lag
  behind;
- a candidate that stands still for more than `PATIENCE` seconds between
  its last listing and its request, or whose request arrives that late;
- a leader that stands still between the check of its lease and a request, for
  longer than `lease.EXPIRY` less `lease.SAFE`.

What follows must be harmless then: records lie below an epoch, and a server
runs one config after the other, each once.
"""

from collections import abc
import contextlib
import time
from typing import Protocol
from urllib import parse
import uuid

from heat_plugins import errors
from heat_plugins.objectstore import stores

#: Seconds from a candidate's listing within which it acts as the winner.
PATIENCE = 10.0

#: Where `create` keeps announcements, in the container of the object.
FOLDER = '.heat-plugins/claims/'

#: The most candidates; each may cost requests.
CANDIDATES = 1000

_PAUSE = 0.25

# Listings that may come too late, one after another.
_LOOKS = 3

# Seconds by which an announcement must be older than ours, clocks compared,
# to be that of a candidate that has died.
_STALE = 120


class Contest(Protocol):
    """The claim that candidates compete for. Earlier candidates sort first.

    Each method may raise what its object store raises.
    """

    @property
    def ours(self) -> str:
        """The name of our candidate."""

    def others(self) -> abc.Iterable[str]:
        """Read a fresh listing; return the other candidates in order.

        :raises Exception: a candidate has won; the contest is over.
        """

    def is_undecided(self, other: str) -> bool:
        """Say whether a candidate has neither won nor given way.

        :raises Exception: it has won; the contest is over.
        """

    def lost(self, other: str) -> Exception:
        """Return what to raise because an earlier candidate is undecided."""

    def announced_before(self, other: str) -> float:
        """Return by how many seconds a candidate is older than ours."""

    def announce(self) -> None:
        """Announce our candidate."""

    def withdraw(self, candidate: str) -> None:
        """Delete an announcement, if it is there."""

    def take(self) -> None:
        """Do what only the winner does."""


def win(
    contest: Contest,
    *,
    clock: abc.Callable[[], float] = time.monotonic,
    sleep: abc.Callable[[float], None] = time.sleep,
) -> bool:
    """Let our candidate win; in any other case leave no trace of it.

    :returns: False if no listing could be read within `PATIENCE`.
    :raises Exception: another candidate has won; see `Contest`.
    """
    # Before our announcement can be in the way of others.
    _must_wait(contest, late=False)
    try:
        contest.announce()
        announced = clock()
        looks = 0
        while looks < _LOOKS:
            listed = clock()
            if _must_wait(contest, late=listed - announced > PATIENCE):
                sleep(_PAUSE)
                continue
            if clock() - listed <= PATIENCE:
                contest.take()
                return True
            looks += 1
    except BaseException:
        contest.withdraw(contest.ours)
        raise
    contest.withdraw(contest.ours)
    return False


def _must_wait(contest: Contest, *, late: bool) -> bool:
    """Give way to earlier candidates; say whether there is a later one.

    The first that is undecided says enough: of hundreds at once, each reads
    about one other and not about all.

    :param late: whether a candidate that was there before our announcement
        must have decided already, unless it has died.
    """
    for other in contest.others():
        if not contest.is_undecided(other):
            continue
        if late or contest.announced_before(other) > _STALE:
            contest.withdraw(other)
        elif other < contest.ours:
            raise contest.lost(other)
        else:
            return True
    return False


def create(
    store: stores.ObjectStore,
    container: str,
    name: str,
    body: bytes,
    *,
    now: abc.Callable[[], float] | None = None,
    clock: abc.Callable[[], float] = time.monotonic,
    sleep: abc.Callable[[float], None] = time.sleep,
) -> bool:
    """Create an object, unless it exists or another caller creates it.

    :param now: seconds since the epoch, as all candidates compare it; by
        default the store's.
    :returns: whether it was written.
    :raises errors.NoObject: there is no such container.
    :raises errors.Unavailable: the store answers too slowly to tell.
    """
    contest = _Creation(store, container, name, body, (now or store.now)())
    try:
        won = win(contest, clock=clock, sleep=sleep)
    except _Taken:
        return False
    if not won:
        raise errors.Unavailable(
            f'Cannot create object {name} of container {container}: a '
            f'listing took more than {PATIENCE:.0f} s. Retry later'
        )
    # The object is there; the announcement of a candidate that has ended
    # delays other candidates only for a short time.
    with contextlib.suppress(errors.ServiceError):
        contest.withdraw(contest.ours)
    return True


class _Taken(Exception):
    """The object exists, or another candidate creates it."""


class _Creation:
    """The contest to create an object."""

    def __init__(
        self,
        store: stores.ObjectStore,
        container: str,
        name: str,
        body: bytes,
        now: float,
    ) -> None:
        self._store = store
        self._container = container
        self._name = name
        self._body = body
        self._folder = f'{FOLDER}{parse.quote(name, safe="")}/'
        self.ours = f'{now:017.6f}-{uuid.uuid4().hex}'

    def others(self) -> abc.Iterable[str]:
        entries = self._store.list_objects(
            self._container, self._folder, CANDIDATES
        )
        # After the listing: who has won deletes its announcement last.
        if self._store.has_object(self._container, self._name):
            raise _Taken
        names = [entry.name.removeprefix(self._folder) for entry in entries]
        return sorted(name for name in names if name != self.ours)

    def is_undecided(self, other: str) -> bool:
        return True

    def lost(self, other: str) -> Exception:
        return _Taken()

    def announced_before(self, other: str) -> float:
        return _announced(self.ours) - _announced(other)

    def announce(self) -> None:
        self._store.put_object(
            self._container, self._folder + self.ours, b'{}'
        )

    def withdraw(self, candidate: str) -> None:
        self._store.delete_object(self._container, self._folder + candidate)

    def take(self) -> None:
        self._store.put_object(self._container, self._name, self._body)


def _announced(candidate: str) -> float:
    """Return when a candidate announced itself; 0 if its name is invalid."""
    try:
        return float(candidate.partition('-')[0])
    except ValueError:
        return 0.0
