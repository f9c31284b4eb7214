# SPDX-License-Identifier: Apache-2.0
"""What rooms keep in the object store, and how they reach it.

``stores`` has the verbs. ``keys`` derives and keeps the keys that ``tempurl``
signs with, ``probes`` says whether they still sign. ``exclusive`` creates
exclusively, ``json_records`` reads and writes records, ``containers`` names
the containers of a project, ``cleaning`` deletes many objects, ``sharing``
lets several callers share one request, ``parcels`` carries what is too large
or too secret for Mistral. It imports neither Heat nor Mistral nor the command
line.
"""
