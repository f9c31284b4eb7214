# SPDX-License-Identifier: Apache-2.0
"""Validations: Ansible playbooks that check a deployment, before or after it.

`validation_operations.ValidationOperations` is the entry point. What a run
does is kept in the object store, and only there; see `validation_ledger`. Each
playbook is run by ansible-runner, below a process, `keeper`, which ends all
that the playbook has started.
"""
