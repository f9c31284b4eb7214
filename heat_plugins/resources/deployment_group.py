# SPDX-License-Identifier: Apache-2.0
"""What our deployment groups do that Heat's do not."""


class GroupMixin:
    """Goes before one of Heat's deployment groups."""

    def get_resource_def(self, include_all=False):
        """Return the properties of a member; those that are set.

        Heat hands on all of them, and in a template a number that is null
        is 0: no time at all, in the case of ``timeout``.
        """
        found = super().get_resource_def(include_all)
        return {k: v for k, v in found.items() if v is not None}
