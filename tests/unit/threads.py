# SPDX-License-Identifier: Apache-2.0
"""Threads whose failures are those of the test."""

from concurrent import futures
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
    pool = futures.ThreadPoolExecutor(len(tasks))
    begun = [pool.submit(task) for task in tasks]
    pool.shutdown(wait=False)
    for each in begun:
        each.result(60)
