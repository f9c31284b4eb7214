# SPDX-License-Identifier: Apache-2.0
"""Files by their paths: from a directory, a tarball or a git repository.

Plans and validations are read this way. Nothing is unpacked onto a disk.
"""
