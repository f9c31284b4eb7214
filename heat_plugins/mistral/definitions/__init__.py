# SPDX-License-Identifier: Apache-2.0
"""Mistral's workflow language, version 2: read, check and rename it.

A definition is a text with one or several workflows, or a workbook.
``reading`` turns it into a :class:`~reading.Definition`, ``checking`` and
``locating`` say what is wrong with it and on which line, ``naming`` finds
the names that its workflows get in a project, and ``renaming`` writes the
text that Mistral is given. ``structured`` writes a definition from Heat's
own properties, ``adhoc`` that of an action. ``deploying`` brings workflows to
Mistral, ``records`` remembers which, ``using`` finds triggers that run them.
"""
