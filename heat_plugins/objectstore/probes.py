# SPDX-License-Identifier: Apache-2.0
"""Probe whether an account's key still signs, once for all callers.

Any user who may write an account's headers can change its TempURL key. The
store then refuses the URLs that the former key has signed, unless that key
stays as the second one. The servers that hold such a URL cannot tell us.
"""

import dataclasses
import threading
import time

from heat_plugins import errors
from heat_plugins.objectstore import keys
from heat_plugins.objectstore import stores

#: Seconds between two probes of a key, in one process.
INTERVAL = 30.0

# Keys to remember; those that were not probed lately are forgotten.
_MOST = 1000


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Verdict:
    at: float
    holds: bool


_verdicts: dict[tuple[str, str], _Verdict] = {}
_lock = threading.Lock()


def holds(store: stores.ObjectStore, signer: keys.Signer) -> bool:
    """Say whether the last probe found that a signer's URLs work.

    No caller waits for the probe of another. Only we change a container's key.
    """
    if signer.kind != keys.ACCOUNT:
        return True
    place = signer.storage_url, signer.key or signer.container
    now = time.monotonic()
    with _lock:
        last = _verdicts.get(place)
        if last is not None and now - last.at < INTERVAL:
            return last.holds
        # The signer is new: its maker has just tried or read its key.
        holds_now = last is None or last.holds
        _verdicts[place] = _Verdict(at=now, holds=holds_now)
        _forget_old(now)
    if last is not None:
        holds_now = _probe(store, signer, last.holds)
        with _lock:
            _verdicts[place] = _Verdict(at=now, holds=holds_now)
    return holds_now


def forget() -> None:
    """Forget the results of all probes."""
    with _lock:
        _verdicts.clear()


def _probe(
    store: stores.ObjectStore, signer: keys.Signer, before: bool
) -> bool:
    try:
        # A store may refuse a URL for other reasons, so the account tells.
        return store.probe(signer.probe_url(store.now())) or signer.key in (
            keys.account_keys(store)
        )
    except errors.ServiceError:
        return before


def _forget_old(now: float) -> None:
    if len(_verdicts) > _MOST:
        for place, verdict in list(_verdicts.items()):
            if now - verdict.at > INTERVAL:
                del _verdicts[place]
