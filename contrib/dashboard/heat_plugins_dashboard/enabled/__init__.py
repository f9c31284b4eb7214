# SPDX-License-Identifier: Apache-2.0
"""Files for Horizon's folder ``local/enabled``."""
