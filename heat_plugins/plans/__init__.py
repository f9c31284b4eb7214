# SPDX-License-Identifier: Apache-2.0
"""Deployment plans: templates in the object store, with choices and settings.

A plan is a container with templates, environments and the file
``plan-environment.yaml``, which names the enabled environments and the set
parameters. `plan_service.Plans` is the entry point.
"""
