# SPDX-License-Identifier: Apache-2.0
"""Core: actions run on a server of a stack, outside of the stack's life.

``orchestration`` is the way to Heat. ``start`` finds what can be run, and
checks what it is given. ``attempts`` delivers a run to its server, reads what
the server sends, and withdraws it. ``follow`` says what has become of it,
``records`` keeps that in the object store, and ``fleet`` is for operations on
many servers. ``runs`` is what is known of one run, ``run_objects`` what its
server sends, wherever that lies, and ``summary`` what may be shown of it.
``services`` is what a caller has for all that. ``run_service`` is the door for
the faces, ``run_operations`` that for workflows. Nothing here knows Heat's
code, Mistral or the command line.
"""
