# SPDX-License-Identifier: Apache-2.0
"""Swift logs to syslog; here it logs to the service's log file."""

import logging
import sys


def add_handler(
    conf: object,
    name: str,
    log_to_console: bool,
    log_route: str | None,
    fmt: str,
    logger: logging.Logger,
    adapted_logger: object,
) -> None:
    """Called by Swift for each logger that it makes."""
    # It makes some of them twice.
    if not any(isinstance(one, _Handler) for one in logger.handlers):
        handler = _Handler(sys.stderr)
        handler.setFormatter(
            logging.Formatter(f'%(asctime)s %(levelname)s {name}: %(message)s')
        )
        logger.addHandler(handler)


class _Handler(logging.StreamHandler):  # type: ignore[type-arg]
    pass
