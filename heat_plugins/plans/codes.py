# SPDX-License-Identifier: Apache-2.0
"""Errors as maps of a code and a message, there and back.

Mistral hands on what JSON can say; who reads it has the same error again.
"""

from collections import abc
from typing import Any

from heat_plugins import foreign
from heat_plugins.objectstore import errors as store_errors
from heat_plugins.plans import errors
from heat_plugins.runs import errors as run_errors

# The first that fits counts, so what is more special comes first.
_Kinds = tuple[type[errors.PlanError], *tuple[type[Exception], ...]]
_CODES: tuple[tuple[str, _Kinds], ...] = (
    ('invalid', (errors.Invalid,)),
    ('exists', (errors.Exists,)),
    ('in-use', (errors.InUse,)),
    ('busy', (errors.Busy,)),
    ('unfinished', (errors.Unfinished,)),
    ('refused', (errors.Refused,)),
    ('not-found', (errors.NotFound, store_errors.NotFound)),
    ('failed', (errors.Failed,)),
    ('denied', (errors.Denied, store_errors.Denied, run_errors.Denied)),
    (
        'unavailable',
        (errors.Unavailable, store_errors.Unavailable, run_errors.Unavailable),
    ),
    ('error', (errors.ServiceError, Exception)),
)


def report(exc: Exception) -> dict[str, str]:
    """Return an error as a map."""
    code = next(code for code, kinds in _CODES if isinstance(exc, kinds))
    return {'code': code, 'message': foreign.block(exc)}


def error(found: abc.Mapping[str, Any]) -> errors.PlanError:
    """Return the error of a map."""
    kinds = dict(_CODES)
    kind, *_ = kinds.get(str(found.get('code')), kinds['error'])
    return kind(str(found.get('message')))
