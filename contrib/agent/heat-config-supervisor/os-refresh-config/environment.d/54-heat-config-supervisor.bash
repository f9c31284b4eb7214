# SPDX-License-Identifier: Apache-2.0
# Puts heat-config-supervisor between 55-heat-config and what it calls. Where
# it is not installed all is as without this file.
: "${HEAT_CONFIG_SUPERVISOR:=/usr/libexec/heat-config-supervisor}"
: "${HEAT_CONFIG_SUPERVISOR_STATE:=/var/lib/heat-config/supervisor}"
if [ -x "$HEAT_CONFIG_SUPERVISOR/heat-config-supervisor" ]; then
    export HEAT_CONFIG_SUPERVISOR HEAT_CONFIG_SUPERVISOR_STATE
    export HEAT_CONFIG_SUPERVISED_HOOKS="${HEAT_CONFIG_HOOKS:-}"
    export HEAT_CONFIG_SUPERVISED_NOTIFY="${HEAT_CONFIG_NOTIFY:-}"
    export HEAT_CONFIG_HOOKS="$HEAT_CONFIG_SUPERVISOR_STATE/hooks"
    export HEAT_CONFIG_NOTIFY="$HEAT_CONFIG_SUPERVISOR/notify"
fi
