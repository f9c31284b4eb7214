# SPDX-License-Identifier: Apache-2.0
"""Deployment plans: templates in the object store, chosen and set.

A plan is a container with templates, environments and the file
``plan-environment.yaml``, which says what is enabled and set; all that is
known of a plan is there. `plan_service.Plans` is the door.
"""
