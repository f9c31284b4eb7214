# SPDX-License-Identifier: Apache-2.0
"""What ties the core to a running heat-engine: its options and its tables.

``rows`` reads and settles deployments in Heat's database, ``hub`` holds what
the deployments of one root stack share in one engine process.
"""
