# SPDX-License-Identifier: Apache-2.0
"""Our deployment classes next to Heat's own, measured on the mini cloud.

``make bench`` runs it; ``python -m tests.bench --help`` tells its options.
No agent runs: the bench PUTs to the URLs that the servers would have been
given. Nothing is measured by asking Heat, which would be work for Heat: what
it does is counted below our classes and Heat's alike (the mini cloud's
request log and counters), and what it has come to is read from its database.
"""
