# SPDX-License-Identifier: Apache-2.0
"""Validations: Ansible playbooks that check a deployment, before or after it.

`operations.Operations` is the door. What a run does is kept in the object
store, and only there; see `ledger`. Each playbook has a process of its own,
`guard`, which ends all that the playbook has started.
"""
