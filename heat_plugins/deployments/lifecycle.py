# SPDX-License-Identifier: Apache-2.0
"""Take one action of a stack, such as UPDATE, through its rollouts.

Rollouts run one after another: an update of a group runs UPDATE on the servers
that stay, then DELETE on those that leave.
"""

from collections import abc
import time

from heat_plugins import foreign
from heat_plugins import retrying
from heat_plugins.deployments import deliveries
from heat_plugins.deployments import fleets
from heat_plugins.deployments import rollout

LOG = foreign.logger(__name__)

#: Seconds to leave an object store alone that does not answer.
STORE_DELAY = 5

# Heat asks as often, in seconds.
_SECOND = 1.0


class Loop:
    """Heat's loop around the checks of one action.

    :param seconds: until the stack's time is up.
    :param ask: raises if the stack has cancelled the action.
    """

    def __init__(
        self, seconds: float, ask: abc.Callable[[], None] | None = None
    ) -> None:
        self._until = time.monotonic() + seconds
        self._ask = ask

    def patience(self) -> float:
        """Return the seconds for which a check may block now."""
        return max(0.0, min(_SECOND, self._until - time.monotonic()))

    def polls_heat(self) -> bool:
        """Poll Heat's checks between two steps; return whether time is left.

        :raises BaseException: the stack has cancelled the action.
        """
        if time.monotonic() >= self._until:
            return False
        if self._ask is not None:
            self._ask()
        return True


#: Where no check may block.
NO_LOOP = Loop(seconds=float('-inf'))

#: What comes after the last rollout, until it returns True; it is given since
#: when the object store has been out of order.
Finish = abc.Callable[[retrying.Outage | None], bool]


class LifecycleAction:
    """One action; see the module.

    :param action: as the stack calls it.
    :param finish: see `Finish`; None if nothing comes after it.
    """

    def __init__(
        self,
        action: str,
        fleet: fleets.Fleet,
        rollouts: abc.Iterable[rollout.Rollout] = (),
        finish: Finish | None = None,
    ) -> None:
        self._action = action
        self._fleet = fleet
        self._rollouts = list(rollouts)
        self._finish = finish
        self._begun = time.monotonic()
        self._outage: retrying.Outage | None = None
        # What is told to members that are withdrawn.
        self._why = f'{action} was cancelled'

    @property
    def pause(self) -> int | None:
        """Seconds to leave it alone; None if it may end each second."""
        if not self._rollouts:
            return STORE_DELAY
        current = self._rollouts[0]
        is_blocked = current.outage is not None and not current.may_answer
        return STORE_DELAY if is_blocked else None

    def begin(self) -> None:
        """Deliver the first batches without blocking.

        :raises deliveries.ActionFailed: it has failed.
        """
        # No more: the method of Heat's that begins must be short.
        self.step(finishes=False)

    def step(self, loop: Loop = NO_LOOP, *, finishes: bool = True) -> bool:
        """Go on; say whether all has ended.

        :param loop: Heat's; it blocks for as long as that allows.
        :param finishes: whether to do what comes after the last rollout.
        :raises deliveries.ActionFailed: it has failed.
        """
        while self._rollouts:
            current = self._rollouts[0]
            try:
                done = current.step(loop.patience())
                if done:
                    LOG.info(
                        '%s has ended %s', self._fleet.label, current.action
                    )
            except deliveries.ActionFailed as exc:
                self._why = str(exc)
                # Else a failure of a DELETE would repeat at each attempt:
                # what is missing may never return, and a stack must be
                # deleted all the same.
                goes_without = (
                    isinstance(exc, deliveries.NoAnswer)
                    and current.action == fleets.DELETE
                    and (
                        self._action == fleets.DELETE or current.outage is None
                    )
                )
                if not goes_without:
                    raise
                self._fleet.tell(
                    current.action,
                    f'DELETE was not run on {current.servers}: {exc}',
                )
                # It has been given its time.
                self._outage = current.outage
                done = True
            if done:
                number = current.progress().all
                if current.failures:
                    self._fleet.tell(
                        self._action,
                        deliveries.of_group(current.failures, number),
                    )
                if current.skipped:
                    self._fleet.tell(
                        self._action,
                        deliveries.skipped(current.skipped, number),
                    )
                self._rollouts.pop(0)
                continue
            if self._fleet.is_cancelled(self._begun):
                raise deliveries.ActionFailed(
                    f'{self._action} was cancelled before {current.servers} '
                    'answered'
                )
            if current.outage is not None:
                self._fleet.renew_access()
            if not (
                current.may_block and loop.patience() > 0 and loop.polls_heat()
            ):
                return False
        return finishes and (
            self._finish is None or self._finish(self._outage)
        )

    def withdraw(self) -> None:
        """Withdraw the pending actions from the servers.

        :raises errors.ServiceError: some could not be withdrawn.
        """
        if self._rollouts:
            self._rollouts[0].withdraw(self._why)
