# SPDX-License-Identifier: Apache-2.0
"""Our deployment classes next to Heat's own, measured on the mini cloud.

No agent runs: the bench PUTs to the URLs that servers are given. It asks Heat
nothing: counters below our classes and Heat's, and the database, tell it.
"""
