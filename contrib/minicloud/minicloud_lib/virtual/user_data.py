# SPDX-License-Identifier: Apache-2.0
"""Print the user data that OS::Nova::Server gives to Nova, by Heat's code.

Runs where Heat is installed. stdin has a JSON object with the server's
``metadata``, and what the template has as its ``user_data``.
"""

import json
import sys

from heat.engine.clients.os import nova


def main() -> None:
    given = json.load(sys.stdin)
    # With this format nothing of the plugin's context is needed.
    print(
        nova.NovaClientPlugin.build_userdata(
            None,
            given['metadata'],
            given['user_data'],
            instance_user=None,
            user_data_format='SOFTWARE_CONFIG',
        )
    )


if __name__ == '__main__':
    main()
