# SPDX-License-Identifier: Apache-2.0
"""The keys that sign TempURLs, and a test that the store accepts them.

A container's key is derived from a secret that all engines share, so that
no two of them can set different ones at the same time. Some object stores
keep a container's key without honouring it (Ceph's gateway does): one signed
request tells, and there the key of the account serves.
"""

from collections import abc
import dataclasses
import hashlib
import hmac
import secrets
import time
from typing import Any
from urllib import parse

from heat_plugins import errors
from heat_plugins import wording
from heat_plugins.objectstore import sharing
from heat_plugins.objectstore import stores
from heat_plugins.objectstore import wire

# The largest expiry that a 32-bit time_t holds: January 2038.
MAX_EXPIRES = 2**31 - 1


CONTAINER = 'container'
ACCOUNT = 'account'

_KEY = 'x-{}-meta-temp-url-key'
_KEY_2 = 'x-{}-meta-temp-url-key-2'
# When the last URL that the former key has signed expires.
_KEY_2_EXPIRES = 'x-container-meta-heat-plugins-key-2-expires'

# A name that no signal has, to send a signed request for.
_PROBE = 'signals/.probe'
_PROBE_SECONDS = 300

# The remedy for a 403.
_ROLE = (
    'the owner of the stack needs an operator role of the object store '
    '(Swift\'s operator_roles, such as "member" or "swiftoperator")'
)

# What a cluster can do changes with its next upgrade, not from hour to hour.
_ABILITY_SECONDS = 3600


@dataclasses.dataclass(frozen=True, kw_only=True)
class Signer:
    """Signs the URLs of one container.

    :ivar kind: whose key it is, `CONTAINER` or `ACCOUNT`. That of an account
        may be changed at any time by others who use it.
    :ivar key: '' if it is another than the present one, and not known.
    :ivar now: the time by the store's clock.
    :ivar given: a URL that the unknown key has signed.
    """

    storage_url: str
    container: str
    kind: str
    key: str = dataclasses.field(repr=False)
    digest: str
    now: abc.Callable[[], float] = dataclasses.field(
        default_factory=wire.Clock, compare=False, repr=False
    )
    given: str | None = dataclasses.field(
        default=None, compare=False, repr=False
    )

    def url(
        self,
        name: str,
        expires: int,
        *,
        method: str = 'PUT',
        is_prefix: bool = False,
    ) -> str:
        """Return a URL with which anybody may do `method` until `expires`.

        It signs the decoded path of the storage URL, its prefix included;
        Ceph's gateway accepts that form under every prefix. Swift and Ceph
        take it for a HEAD as well.

        :param expires: seconds since the epoch.
        :param is_prefix: whether it is for all objects whose names begin with
            `name`; a caller puts the rest of the name at the end of the path.
        :raises ValueError: for another digest, or without both a container
            and an object; a signed request for a bare container crashes some
            of Ceph's gateways.
        """
        # It takes 0.1 s and 7 MB, which commands that sign nothing need not
        # pay.
        from swiftclient import utils

        if not self.container or not name.strip('/'):
            raise ValueError('A TempURL needs a container and an object')
        parts = parse.urlsplit(self.storage_url.rstrip('/'))
        path = f'{parse.unquote(parts.path)}/{self.container}/{name}'
        signed = utils.generate_temp_url(
            path,
            min(expires, MAX_EXPIRES),
            self.key,
            method,
            absolute=True,
            prefix=is_prefix,
            digest=self.digest,
        )
        # It quotes nothing, and for the prefix it takes the third segment of
        # a path for the container, which is none of Ceph's paths.
        query = dict(parse.parse_qsl(signed[len(path) + 1 :]))
        if is_prefix:
            query['temp_url_prefix'] = name
        return parts._replace(
            path=parse.quote(path), query=parse.urlencode(query), fragment=''
        ).geturl()

    def probe_url(self, now: float) -> str:
        """Return a URL that tests whether the store accepts signatures.

        :param now: by the store's clock; ours may be wrong.
        """
        return self.given or self.url(_PROBE, int(now) + _PROBE_SECONDS)

    def behind(self, name: str, url: str) -> 'Signer':
        """Return the signer of a URL that a server has for an object.

        It is this one, or a former key of the account: only a request of the
        URL tells whether the store still accepts that. A container's keys are
        all ours.
        """
        signed = _signed(url)
        if self.kind == CONTAINER or signed == _signed(
            self.url(name, signed[0])
        ):
            return self
        return dataclasses.replace(self, key='', given=url)


def _signed(url: str) -> tuple[int, str]:
    """Return when a TempURL expires, and its signature."""
    query = dict(parse.parse_qsl(parse.urlsplit(url).query))
    expires = query.get('temp_url_expires', '')
    return int(expires) if expires.isdigit() else 0, query.get(
        'temp_url_sig', ''
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Ability:
    """Which keys and digests a cluster accepts.

    :ivar kind: a key of whom, `CONTAINER` or `ACCOUNT`.
    :ivar bulk: how many objects one request may delete; 0 for one by one.
    :ivar known_at: since when that is known, by `time.monotonic`.
    """

    kind: str
    digest: str
    bulk: int
    known_at: float


def derive(secret: str, purpose: str) -> str:
    """Return the key for a purpose; HMAC-SHA256 of the secret, in hex."""
    return hmac.new(
        secret.encode(), f'heat-plugins {purpose}'.encode(), hashlib.sha256
    ).hexdigest()


def account_keys(store: stores.ObjectStore) -> abc.Collection[str]:
    """Return the keys that an account has."""
    there = store.head_account()
    keys = (there.get(name.format(ACCOUNT)) for name in (_KEY, _KEY_2))
    return [key for key in keys if key]


def withdraw(store: stores.ObjectStore, container: str) -> None:
    """Remove a container's keys, which revokes all URLs signed with them.

    This changes nothing where the account's key signs.
    """
    names = (_KEY.format(CONTAINER), _KEY_2.format(CONTAINER), _KEY_2_EXPIRES)
    store.post_container(container, dict.fromkeys(names, ''))


def _refused(
    exc: errors.Denied, passing: type[errors.Unavailable]
) -> errors.ServiceError:
    """Return the error for a refusal of the stack's owner.

    :param passing: the error's class if the refusal may be temporary.
    """
    error: errors.ServiceError
    if exc.status is None:
        # Keystone refuses a token: roles are not the cause.
        error = errors.TempURLsUnusable(str(exc))
    elif exc.may_pass:
        error = passing(
            f"{exc}: it refuses every token of the stack's owner. If it can "
            f'check tokens, {_ROLE}',
            exc.status,
        )
    else:
        error = errors.TempURLsUnusable(
            f'{exc}. To create containers and TempURLs, {_ROLE}'
        )
    error.is_denial = True
    return error


class KeyKeeper:
    """Sets a container's key, and returns the signer for it.

    :param secret: what keys are derived from; None where the only secret at
        hand is publicly known, so that a random key is better.
    :param digests: the digests to use, the most wanted first.
    :param overlap: seconds for which a key that is replaced stays valid
        with the new one: as long as its URLs may live. None: always.
    """

    # By cluster, for all keepers of this process.
    abilities: dict[str, Ability] = {}
    _attempts: dict[str, sharing.SharedAttempt[Ability]] = {}

    def __init__(
        self,
        store: stores.ObjectStore,
        *,
        secret: str | None,
        digests: abc.Sequence[str],
        overlap: int | None,
    ) -> None:
        self._store = store
        self._secret = secret
        self._digests = digests
        self._overlap = overlap

    def ensure(self, container: str, former: Signer | None = None) -> Signer:
        """Create a container with its key if needed; return its signer.

        :param former: the signer of URLs of the container that servers
            still hold. They stay valid if we replace the container.
        :raises errors.TempURLsUnusable: the store has no TempURLs, takes
            none of our keys, or refuses the stack's owner.
        :raises errors.TokenRejected: it rejects a new token, too, and has
            created nothing.
        :raises errors.Untouched: it fails temporarily, and has created
            nothing.
        :raises errors.Unavailable: it rejects tokens, or fails temporarily,
            later on.
        :raises errors.ServiceError: any other failure.
        """
        try:
            there = self._store.head_container(container)
        except errors.NoObject:
            there = None
        except errors.Denied as exc:
            raise _refused(exc, errors.TokenRejected) from exc
        except errors.Unavailable as exc:
            raise errors.Untouched(str(exc), exc.status) from exc
        try:
            key = self._ensure_container(container, there, former)
            ability = self._ability(container, key)
            if ability.kind == ACCOUNT:
                key = self._ensure_account()
        except errors.Denied as exc:
            raise _refused(exc, errors.Unavailable) from exc
        return self._signer(container, ability.kind, key, ability.digest)

    def _signer(
        self, container: str, kind: str, key: str, digest: str
    ) -> Signer:
        """Return what signs URLs of a container."""
        return Signer(
            storage_url=self._store.url,
            container=container,
            kind=kind,
            key=key,
            digest=digest,
            now=self._store.now,
        )

    def _ensure_container(
        self,
        container: str,
        there: abc.Mapping[str, str] | None,
        former: Signer | None,
    ) -> str:
        """Create a container, or set its key if needed; return the key.

        :param there: the headers of the container; None if there is none.
        """
        header, header_2 = _KEY.format(CONTAINER), _KEY_2.format(CONTAINER)
        if there is None:
            key = self._own_key(container)
            if self._secret is None and former and former.kind == CONTAINER:
                key = former.key
            self._store.put_container(container, {header: key})
            return self._settled(container, key)
        current = there.get(header)
        if self._secret is None and current:
            return current
        key = self._own_key(container)
        if key == current:
            # A former key goes once its URLs have expired.
            until = there.get(_KEY_2_EXPIRES, '')
            if until.isdigit() and int(until) < self._store.now():
                self._store.post_container(
                    container, {header_2: '', _KEY_2_EXPIRES: ''}
                )
            return key
        # Also if ours is the second key: another engine that has another
        # secret put it there, and each URL that may be signed with it
        # extends its time. The two keys change places as long as there
        # are engines of both kinds, and both stay valid all that time.
        headers = {header: key}
        if current:
            expires = ''
            if self._overlap is not None:
                expires = str(int(self._store.now()) + self._overlap)
            headers |= {header_2: current, _KEY_2_EXPIRES: expires}
        self._store.post_container(container, headers)
        return self._settled(container, key)

    def _own_key(self, purpose: str) -> str:
        """Return the key to set where none is, the same in each engine."""
        if self._secret is None:
            return secrets.token_hex(32)
        return derive(self._secret, f'temp-url-key {purpose}')

    def _settled(self, container: str, key: str) -> str:
        """Return the key in force, where two random ones may have met."""
        if self._secret is not None:
            return key
        headers = self._store.head_container(container)
        return headers.get(_KEY.format(CONTAINER)) or key

    def _ensure_account(self) -> str:
        """Return the account's key; set one only where there is none."""
        header = _KEY.format(ACCOUNT)
        if there := self._store.head_account().get(header):
            return there
        project_id = self._store.project_id
        # Each account's owners can read its key, so no two may have the same.
        key = (
            secrets.token_hex(32)
            if project_id is None
            else self._own_key(f'{ACCOUNT} {project_id}')
        )
        self._store.post_account({header: key})
        # Another engine may have set one first, or this is a stale read.
        return self._store.head_account().get(header) or key

    def _ability(self, container: str, key: str) -> Ability:
        """Return the abilities of the cluster, probed once an interval."""
        # Those who come meanwhile share the answer rather than ask too; other
        # clusters are no concern of theirs.
        attempt = self._attempts.setdefault(
            self._store.cluster_url, sharing.SharedAttempt()
        )
        try:
            return attempt.share(lambda: self._new_ability(container, key))
        except errors.Denied:
            # The refusal may concern the account of another attempt.
            return self._new_ability(container, key)

    def _new_ability(self, container: str, key: str) -> Ability:
        """Probe keys and digests, unless an earlier attempt just has."""
        cluster = self._store.cluster_url
        if (known := self.known(cluster)) is not None:
            return known
        now = time.monotonic()
        info = self._store.info()
        digests = self._usable_digests(info)
        bulk = (info or {}).get('bulk_delete') or {}
        for kind in (CONTAINER, ACCOUNT):
            if kind == ACCOUNT:
                key = self._ensure_account()
            for digest in digests:
                signer = self._signer(container, kind, key, digest)
                if self._store.probe(signer.probe_url(self._store.now())):
                    self.abilities[cluster] = ability = Ability(
                        kind=kind,
                        digest=digest,
                        bulk=int(bulk.get('max_deletes_per_request') or 0),
                        known_at=now,
                    )
                    return ability
        remedy = (
            'In Swift, its tempurl middleware must come before the '
            'middleware that authenticates. In Ceph RGW, no RGW account '
            'may own the container'
            if self._store.names_account
            else wording.no_account(self._store.url)
        )
        raise errors.TempURLsUnusable(
            'The object store accepts no TempURL, neither with a key of the '
            f'container nor with one of the account ({", ".join(digests)}). '
            + remedy
        )

    @classmethod
    def known(cls, cluster: str) -> Ability | None:
        """Return the abilities of a cluster, if it was probed lately.

        :param cluster: its `stores.ObjectStore.cluster_url`.
        """
        known = cls.abilities.get(cluster)
        if known and time.monotonic() - known.known_at > _ABILITY_SECONDS:
            return None
        return known

    def _usable_digests(
        self, info: abc.Mapping[str, Any] | None
    ) -> abc.Sequence[str]:
        """Return the digests to try, by ``/info``; the most wanted first."""
        if info is None:
            # The store does not say; the signed requests will tell.
            return self._digests
        if 'tempurl' not in info:
            raise errors.TempURLsUnusable(
                'The object store has no TempURLs (no "tempurl" in its '
                '/info); Swift has them with its tempurl middleware'
            )
        about = info['tempurl'] if isinstance(info['tempurl'], dict) else {}
        for method in ('PUT', 'HEAD'):  # for the server, and to try keys
            if method not in about.get('methods', [method]):
                raise errors.TempURLsUnusable(
                    f'The object store allows no {method} with TempURLs '
                    '("methods" of its tempurl middleware)'
                )
        # Stores from before there was a choice name none.
        allowed = about.get('allowed_digests') or ['sha1']
        digests = [name for name in self._digests if name in allowed]
        if not digests:
            raise errors.TempURLsUnusable(
                f'The object store signs with {", ".join(allowed)}, and '
                '[heat_plugins] temp_url_digests allows only '
                f'{", ".join(self._digests)}'
            )
        return digests
