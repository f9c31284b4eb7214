# SPDX-License-Identifier: Apache-2.0
"""Core: how a server's signal travels through an object store.

``store`` speaks to the object store, ``tempurl`` signs, ``keys`` derives and
keeps the signing keys, ``body`` says what a signal means, and ``watcher``
looks for the signals of all the deployments that wait. Nothing here knows
Heat.
"""
