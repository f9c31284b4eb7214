# SPDX-License-Identifier: Apache-2.0
"""Choose one winner; no object store creates objects exclusively.

Swift honours ``If-None-Match: *`` only by what one of its proxies sees;
Ceph's gateway ignores it and overwrites. So a process announces first what it
is about to do, with an object of its own, and then reads what others have
announced: at least one of two sees the other. All exclusiveness builds on
that: `create` makes an object for the first of all candidates; so names and
locks of plans without Mistral, runs of validations, and epochs of a `lease`.

Of the candidates that see each other, one wins:

- If a candidate has won already, the others give way.
- If several candidates are undecided, the first by name wins, but only after
  the others have given way or won: they may have read their listings before
  its announcement.
- A candidate whose last listing is older than `PATIENCE` seconds reads
  another. After a few times `PATIENCE` it gives way. So a candidate waits at
  most `PATIENCE` for a later one that has died. An earlier one that has died
  refuses others for `_STALE` seconds.

These windows remain:

1. *A listing lags behind*, as Swift's may: it does not show an announcement
   that was made before it. Then two undecided candidates can both win. A
   `lease` does not rely on it: it asks for the next epochs by name.
2. *A process stands still* for more than `PATIENCE` seconds between its last
   listing and its request.
3. *A request takes effect late*, after its caller has had the answer or an
   error. A candidate that got an error gives way, and takes its announcement
   back. If its object appears then, it stands although its maker does not know
   of it, or in place of the winner's: who must know reads it again. A repeated
   announcement is in the way of others for at most `PATIENCE`. A repeated
   acquisition of a released lease holds it until it expires.
4. *A holder of a lease stands still* between a check and the request that
   relies on it, for longer than the lease's expiry less its safe time.

What follows is harmless: the record of a plan's name bears a token. Of two
changes of a plan at once the later one stays.
"""

from collections import abc
import contextlib
import dataclasses
import time
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

# For how many times `PATIENCE` a candidate reads listings.
_LOOKS = 3

# Seconds by which an announcement must be older than ours, clocks compared,
# to be that of a candidate that has died.
_STALE = 120


class _Taken(Exception):
    """Another candidate has won, or is undecided and earlier than ours."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Contest:
    """The candidates that would create an object, each with an announcement.

    Functions may raise what the object store raises.

    :ivar name: of the object.
    :ivar ours: the name of our candidate. Earlier candidates sort first.
    """

    store: stores.ObjectStore
    container: str
    name: str
    ours: str

    @property
    def folder(self) -> str:
        """The prefix of the names of all announcements."""
        return f'{FOLDER}{parse.quote(self.name, safe="")}/'

    def win(
        self,
        take: abc.Callable[[], None],
        *,
        clock: abc.Callable[[], float] = time.monotonic,
        sleep: abc.Callable[[float], None] = time.sleep,
    ) -> bool:
        """Let our candidate win; in any other case leave no trace of it.

        :param take: does what only the winner does.
        :returns: False if no listing could be read within `PATIENCE`.
        :raises _Taken: the object is there, or an earlier candidate is
            undecided.
        """
        # Before our announcement can be in the way of others.
        self._must_wait(None)
        won = False
        try:
            self.store.put_object(
                self.container, self.folder + self.ours, b'{}'
            )
            announced = listed = clock()
            while not won and listed - announced <= _LOOKS * PATIENCE:
                listed = clock()
                if self._must_wait(listed - announced):
                    sleep(_PAUSE)
                elif clock() - listed <= PATIENCE:
                    take()
                    won = True
        finally:
            if not won:
                self.withdraw(self.ours)
        return won

    def withdraw(self, candidate: str) -> None:
        """Delete an announcement, if it is there."""
        self.store.delete_object(self.container, self.folder + candidate)

    def _must_wait(self, since: float | None) -> bool:
        """Give way to earlier candidates; say whether there is a later one.

        The first that is undecided says enough: of hundreds at once, each
        reads about one other and not about all.

        :param since: seconds since our announcement; None: there is none.
            Candidates that were there before it must have decided after
            `PATIENCE`, unless they have died.
        """
        entries = self.store.list_objects(
            self.container, self.folder, CANDIDATES
        )
        # After the listing: the winner deletes its announcement last.
        if self.store.has_object(self.container, self.name):
            raise _Taken
        names = {entry.name.removeprefix(self.folder) for entry in entries}
        ours = _started(self.ours) or 0.0
        for other in sorted(filter(_started, names - {self.ours})):
            age = ours - (_started(other) or 0.0)
            if age > _STALE or (since or 0.0) > PATIENCE:
                self.withdraw(other)
            elif other < self.ours:
                raise _Taken
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

    def take() -> None:
        """Create the object, unless it exists."""
        try:
            store.put_object(container, name, body)
        except errors.Unavailable:
            # It may have been written all the same.
            with contextlib.suppress(errors.NoObject, errors.TooLarge):
                if store.get_object(container, name, len(body)) == body:
                    return
            raise

    contest = _Contest(
        store=store,
        container=container,
        name=name,
        ours=f'{(now or store.now)():017.6f}-{uuid.uuid4().hex}',
    )
    try:
        won = contest.win(take, clock=clock, sleep=sleep)
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


def _started(candidate: str) -> float | None:
    """Return the time in a candidate's name; None for any other name."""
    try:
        return float(candidate.partition('-')[0])
    except ValueError:
        return None
