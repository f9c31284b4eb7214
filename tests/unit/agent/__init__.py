# SPDX-License-Identifier: Apache-2.0
"""heat-config-supervisor, which lies in no package that is installed."""

import pathlib
import sys

#: Where contrib/agent is.
ADD_ON = pathlib.Path(__file__).resolve().parents[3] / 'contrib/agent'

PROGRAMS = ADD_ON / 'heat-config-supervisor/install.d/heat-config-supervisor'

sys.path.insert(0, str(PROGRAMS))
