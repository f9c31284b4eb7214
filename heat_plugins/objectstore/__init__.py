# SPDX-License-Identifier: Apache-2.0
"""Access to the object store, and the forms in which rooms use it.

``stores`` has the verbs, names the containers of a project, and sends requests
over ``wire``, within a budget of time and bytes, and by the store's clock.
``keys`` derives and keeps the keys of TempURLs, and signs them. ``exclusive``
creates exclusively, ``json_records`` reads and writes records, ``lease`` holds
them for a time, ``cleaning`` deletes many objects, ``sharing`` lets several
callers share one request, and ``parcels`` carries what is too large or too
secret for Mistral. Nothing here imports Heat, Mistral or the command line.
"""
