# SPDX-License-Identifier: Apache-2.0
"""Core: actions run on a server of a stack, outside of the stack's life.

``stack_tree`` is the way to Heat. ``targets`` finds what can be run, and
checks what it is given. ``run_records`` is what is known of a run, and
``deciding`` what it does next. ``run_store`` keeps runs, and ``ordering`` is
what users order. ``stepping`` says what a server is given, and how that ends;
``run_objects`` is what it sends, and ``logs`` reads what it prints.
``overview`` and ``summary`` are what may be shown, and ``telling`` is when a
webhook is told something. Nothing here knows Heat's code, Mistral or the
command line; `engine.runs` leads runs.
"""
