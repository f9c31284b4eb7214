# SPDX-License-Identifier: Apache-2.0
"""The mini cloud: OpenStack services on one machine, for demo and tests.

What is in this package runs on Python's standard library alone. What is in
its ``services`` package runs inside the virtual environment that this code
builds, one module for each service.
"""
