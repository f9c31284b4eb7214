# SPDX-License-Identifier: Apache-2.0
"""Core: actions run on a server of a stack, outside of the stack's life.

``orchestration`` is the way to Heat, ``targets`` finds what can be run and
``schema`` checks what it is given. ``starting`` hands a run to its server,
``settling`` says what has become of it, ``waiting`` does so until it has
ended. ``run`` is what is known of one, ``summary`` what may be shown of it,
and ``records`` keeps it in the object store; ``unreadable`` is for those that
it cannot read. ``service`` is the door for the faces, ``ledger`` that part of
it which an engine needs, and ``triggers`` tells what asks an engine for a run.
Nothing here knows Heat's code, Mistral or the command line.
"""
