# SPDX-License-Identifier: Apache-2.0
"""Operations: one action on many servers, over stacks.

An operation is a record in the object store, not a process. ``operations`` is
what is known of one, and what it may do at a time. ``deciding`` says what
comes next; it is a pure function. ``records`` keeps the record, and lets one
process at a time write it; ``advancing`` is what that process does.
``dispatch`` delivers runs to members and withdraws them, ``member_runs`` does
so for one of them. ``fleet_requests`` pauses, resumes, cancels and retries.
``fleet_targets`` finds the targets, ``fleets`` is the door for the faces,
``overview`` what may be shown, also as runs of their stacks. ``exclusions``
keeps an action from running twice on a deployment.
"""
