# SPDX-License-Identifier: Apache-2.0
"""Sign the TempURLs of a root stack's container, in one engine process."""

from collections import abc
import contextlib
import threading
import time

from heat.common import crypt
from oslo_config import cfg

from heat_plugins import errors
from heat_plugins.objectstore import keys
from heat_plugins.objectstore import sharing
from heat_plugins.objectstore import stores

#: Seconds between two probes of a key, for one root stack in one process.
PROBE_INTERVAL = 30.0


# For how long to believe that the key of an account is what it was.
_ACCOUNT_KEY_SECONDS = 300

# For how long to believe that a container is there which was seen.
_CONTAINER_SECONDS = 10

# Seconds for which AUTO skips an object store after a refusal.
_REFUSAL_SECONDS = 300

# The same after a refused token, which is often temporary.
_TOKEN_REFUSAL_SECONDS = 30


def temp_url_secret() -> str | None:
    """Return the secret from which TempURL keys are derived.

    None if that would be what Heat's source publishes.
    """
    secret: str | None = cfg.CONF.heat_plugins.temp_url_secret
    if secret:
        return secret
    default = next(
        opt.default
        for opt in crypt.auth_opts
        if opt.name == 'auth_encryption_key'
    )
    key: str | None = cfg.CONF.auth_encryption_key
    return None if key == default else key


class Signing:
    """Keeps the signer of one container.

    :param store: returns the account's object store.
    """

    def __init__(
        self, container: str, store: abc.Callable[[], stores.ObjectStore]
    ) -> None:
        self._container = container
        self._store = store
        # For what is here, and never while the object store is asked.
        self._lock = threading.Lock()
        self._action_limit = 0
        self._signer: keys.Signer | None = None
        self._signer_since = 0.0
        self._former_signer: keys.Signer | None = None
        self._signer_attempt: sharing.SharedAttempt[keys.Signer] = (
            sharing.SharedAttempt()
        )
        # When the container was last seen.
        self._seen_at = 0.0
        # What the store has refused last, and until when to believe that.
        self._refused: tuple[errors.ServiceError | None, float] = None, 0.0
        # When URLs were probed last, by what signs them, and if they worked.
        self._probed: dict[keys.Signer, tuple[float, bool]] = {}

    def allow(self, seconds: int) -> None:
        """Note for how long an action of the stack may take."""
        self._action_limit = max(self._action_limit, seconds)

    def see(self) -> None:
        """Note that the container is there."""
        self._seen_at = time.monotonic()

    def signer(self, *, certain: bool = False) -> keys.Signer:
        """Return the signer of URLs of the container; make both if need be.

        :param certain: whether to look if the container is still there. For
            as long as no deployment has a URL to it, any engine may drop it.
        :raises errors.ServiceError: as `keys.KeyKeeper.ensure`.
        """
        # The store may have moved.
        url, now = self._store().url, time.monotonic()
        with self._lock:
            signer = self._signer
            age, unseen = now - self._signer_since, now - self._seen_at
            if (
                signer is not None
                and signer.storage_url == url
                and not (certain and unseen > _CONTAINER_SECONDS)
                and (
                    signer.kind == keys.CONTAINER
                    or age <= _ACCOUNT_KEY_SECONDS
                )
            ):
                return signer
            attempt = self._signer_attempt
        return attempt.share(lambda: self._new_signer(attempt))

    def key_holds(self, signer: keys.Signer) -> bool:
        """Say whether the last probe found that a signer's URLs work.

        Any user who may write an account's headers can change its TempURL key.
        The store then refuses the URLs that the former key has signed, unless
        that key stays as the second one. The servers that hold such a URL
        cannot tell us. Only we change a container's key. No caller waits for
        the probe of another. If URLs no longer work, the next one is made with
        the key that counts now.
        """
        if signer.kind != keys.ACCOUNT:
            return True
        now = time.monotonic()
        with self._lock:
            # At first its maker has just tried or read its key.
            probed_at, holds = self._probed.get(signer, (now, True))
            is_due = now - probed_at >= PROBE_INTERVAL
            self._probed[signer] = now if is_due else probed_at, holds
        if is_due:
            store = self._store()
            # A store may refuse a URL for other reasons, so the account tells.
            with contextlib.suppress(errors.ServiceError):
                holds = store.probe(signer.probe_url(store.now())) or (
                    signer.key in keys.account_keys(store)
                )
            self._probed[signer] = now, holds
        current = self._signer
        if not holds and current is not None and current.key == signer.key:
            self.forget()
        return holds

    def _new_signer(
        self, attempt: sharing.SharedAttempt[keys.Signer]
    ) -> keys.Signer:
        options = cfg.CONF.heat_plugins
        # The most seconds that a URL may live; None: there is no limit.
        longest: int | None = options.temp_url_lifetime_max
        if longest is not None:
            longest = max(
                longest, self._action_limit + int(options.temp_url_margin)
            )
        keeper = keys.KeyKeeper(
            self._store(),
            secret=temp_url_secret(),
            digests=options.temp_url_digests,
            overlap=longest,
        )
        try:
            signer = keeper.ensure(self._container, self._former_signer)
        except (errors.TempURLsUnusable, errors.TokenRejected) as exc:
            believed = _REFUSAL_SECONDS
            if exc.may_pass:
                believed = _TOKEN_REFUSAL_SECONDS
            self._refused = exc, time.monotonic() + believed
            raise
        with self._lock:
            self._refused = None, 0.0
            self._former_signer = signer
            # Or else the container may have been dropped meanwhile.
            if attempt is self._signer_attempt:
                self._signer = signer
                self._signer_since = self._seen_at = time.monotonic()
        return signer

    def forget(self) -> None:
        """Let the next deployment that needs the container recreate it."""
        with self._lock:
            self._signer = None
            self._signer_attempt = sharing.SharedAttempt()

    @property
    def refusal(self) -> errors.ServiceError | None:
        """Why there were no TempURLs to be had a short while ago, if so."""
        refusal, until = self._refused
        return refusal if time.monotonic() <= until else None
