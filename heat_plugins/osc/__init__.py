# SPDX-License-Identifier: Apache-2.0
"""Face: commands of ``openstack``. They import without Heat."""
