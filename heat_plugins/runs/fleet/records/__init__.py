# SPDX-License-Identifier: Apache-2.0
"""An operation's records, and which process may write them."""
