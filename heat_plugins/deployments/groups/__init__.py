# SPDX-License-Identifier: Apache-2.0
"""An action on all members of a group that is one resource."""
