# SPDX-License-Identifier: Apache-2.0
"""``openstack deployment plan validation …``."""
