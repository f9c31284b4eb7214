# SPDX-License-Identifier: Apache-2.0
"""The parts of the mini cloud that need no cloud."""

import pathlib
import sys

_ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(_ROOT / 'contrib/minicloud'))
