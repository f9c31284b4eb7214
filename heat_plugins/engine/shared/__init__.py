# SPDX-License-Identifier: Apache-2.0
"""What deployments of one root stack, or of one engine process, share."""
