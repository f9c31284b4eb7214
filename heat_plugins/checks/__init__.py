# SPDX-License-Identifier: Apache-2.0
"""The checks of `heat_plugins.status`, a module for each subject.

The checks run where heat-engine does, with Heat installed and its
configuration read into oslo.config's global object. Each returns a result of
oslo.upgradecheck that says what is right, and for what is wrong the remedy.
None of them raises an error of the service that it asks.
"""
