# SPDX-License-Identifier: Apache-2.0
"""Core: what a server's signal means, and the shared poll for signals.

``body`` says what a signal means: a result, or the report that a server has
started. ``live`` has the output and the control of an action while it runs.
``signal_names`` has the names of objects and the IDs of groups. ``watcher``
polls for the signals of all deployments that wait, ``paces`` says how often
and wakes the threads that wait, and ``arrivals`` lists what has arrived.
Nothing here knows Heat.
"""
