# SPDX-License-Identifier: Apache-2.0
"""Validations: Ansible playbooks that check a deployment, before or after it.

`validation_operations.ValidationOperations` is the entry point. The object
store keeps the runs; see `validation_ledger`. ansible-runner runs playbooks
below a process, `keeper`, which ends all their processes.
"""
