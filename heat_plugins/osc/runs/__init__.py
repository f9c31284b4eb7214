# SPDX-License-Identifier: Apache-2.0
"""``openstack software deployment …``."""
