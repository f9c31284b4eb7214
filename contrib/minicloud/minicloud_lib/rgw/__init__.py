# SPDX-License-Identifier: Apache-2.0
"""The profile "rgw": Ceph's RADOS Gateway in place of Swift.

One monitor, one OSD that keeps its objects in memory, and one gateway. A
proxy before the gateway writes down and disturbs what is asked of it, as the
filters in Swift's proxy do.
"""
