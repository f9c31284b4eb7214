# SPDX-License-Identifier: Apache-2.0
"""What `make demo` runs, and how it shows that.

``main`` begins and ends it, ``tour`` holds the steps, those of workflows, of
BACKUP and of REINDEX in ``news``, ``backups`` and ``live``, and ``storeless``
those of a cloud without an object store. The others watch a
stack (``stack``), a server's disk (``server``), Swift's requests and what
remains anywhere (``evidence``). ``shell`` runs commands as a user would type
them, and ``screen`` prints.
"""
