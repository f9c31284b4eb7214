# SPDX-License-Identifier: Apache-2.0
"""Threads that end, and whose failures are those of the test."""

import threading
import types


def stand_in(start):
    """Return what stands for the module `threading` in a module.

    :param start: is called with the target of a thread that is started.
    """
    return types.SimpleNamespace(
        Condition=threading.Condition,
        Event=threading.Event,
        Lock=threading.Lock,
        Thread=lambda target, **more: types.SimpleNamespace(
            start=lambda: start(target)
        ),
    )


def run(*tasks):
    """Do several things at the same time; raise what one of them raises."""
    failures = []

    def guard(task):
        try:
            task()
        except BaseException as exc:
            failures.append(exc)

    threads = [
        threading.Thread(target=guard, args=(task,), daemon=True)
        for task in tasks
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    for failure in failures:
        raise failure
