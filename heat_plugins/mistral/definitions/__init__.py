# SPDX-License-Identifier: Apache-2.0
"""Mistral's workflow language, version 2: read, check and rename it.

A definition is a text with one or several workflows, or a workbook.
`definition_reading` turns it into a `definition_reading.Definition`;
`definition_checking` says what is wrong with it and on which line.
`structured` writes a definition, of a workflow or of an ad-hoc action, from a
resource's properties, and `renaming` the text that Mistral is given.
`publishing` brings workflows to Mistral and removes them, and
`definition_records` knows their names there.
"""
