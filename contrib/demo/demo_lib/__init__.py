# SPDX-License-Identifier: Apache-2.0
"""What `make demo` runs, and how it shows that.

``main`` begins and ends it, ``tour`` holds the steps, those of workflows and
of BACKUP in ``news`` and ``backups``. The others look: at a
stack (``stack``), at a server's disk (``server``), at Swift's requests and at
what remains anywhere (``evidence``). ``shell`` runs commands as a user would
type them, and ``screen`` prints.
"""
