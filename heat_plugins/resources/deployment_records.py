# SPDX-License-Identifier: Apache-2.0
"""What a deployment has made: its row, and the configs derived for it.

Those of the last action are the server's; what came before is deleted as
soon as can be, and remembered until then.
"""

import json

from heat.common import exception
from heat.objects import software_deployment as deployment_objects
from heat.rpc import api as rpc_api

from heat_plugins import foreign
from heat_plugins.configs import hidden_inputs
from heat_plugins.engine import in_process

LOG = foreign.logger(__name__)

#: The key in a resource's data for the configs that its actions have made:
#: the last one, and those before it that could not be deleted so far.
CONFIGS_KEY = 'heat_plugins_configs'

#: The key for inputs of an action that was taken back.
INPUTS_KEY = 'heat_plugins_inputs'

#: The key in a resource's data that says that an action after CREATE was
#: taken back: the row is gone, and what CREATE did is still to be undone.
UNDO_KEY = 'heat_plugins_undo'

#: The key in a resource's data that says that another one is to do anew what
#: this one has failed to do.
GIVEN_WAY_KEY = 'heat_plugins_given_way'

#: The key in a resource's data for the server that it was given the CREATE of,
#: in the place of another one.
TAKEN_OVER_KEY = 'heat_plugins_taken_over'

#: The key in a resource's data for the server whose agent has named the config
#: that it answers, in a signal through Heat's APIs.
NAMING_KEY = 'heat_plugins_naming'


class Records:
    """The part of a deployment that keeps its records."""

    def rpc_client(self):
        """Return what answers as Heat's RPC client, mostly by itself."""
        return in_process.Client(super().rpc_client)

    @property
    def _label(self):
        """What the log calls it, to be found by any of its names and ids."""
        return (
            f'Deployment {self.resource_id} ({self.name} of stack '
            f'{self.stack.name}, {self.stack.id})'
        )

    def _row(self):
        """Return the deployment as Heat stores it, or None."""
        if self.resource_id is None:
            return None
        try:
            return deployment_objects.SoftwareDeployment.get_by_id(
                self.context, self.resource_id
            )
        except exception.NotFound:
            return None

    def _made_configs(self, row):
        """Return the ids of configs that were made and may still exist."""
        made = self.data().get(CONFIGS_KEY, '').split()
        if row is not None and row.config_id not in made:
            made.append(row.config_id)
        return made

    def _note_configs(self, config_ids):
        if config_ids:
            self.data_set(CONFIGS_KEY, ' '.join(config_ids))
        else:
            self.data_delete(CONFIGS_KEY)

    def _delete_configs(self, config_ids):
        """Delete configs that no server has; return those that remain."""
        remaining = []
        for config_id in config_ids:
            try:
                self._delete_derived_config(config_id)
            except Exception as exc:
                LOG.warning(
                    '%(deployment)s: config %(config)s is deleted later: '
                    '%(error)s',
                    {
                        'deployment': self._label,
                        'config': config_id,
                        'error': exc,
                    },
                )
                remaining.append(config_id)
        return remaining

    def _inputs_before(self):
        """Return the inputs that the last action had, by name."""
        row = self._row()
        if row is None:
            return json.loads(self.data().get(INPUTS_KEY, '{}'))
        return {
            each['name']: each.get('value')
            for each in row.config.config[rpc_api.SOFTWARE_CONFIG_INPUTS]
        }

    def _keep_inputs(self, row):
        """Remember what the next update has to compare, without the row."""
        kept = {
            each['name']: each.get('value')
            for each in row.config.config[rpc_api.SOFTWARE_CONFIG_INPUTS]
            if each.get('replace_on_change')
        }
        if kept:
            # They may be secrets.
            self.data_set(INPUTS_KEY, json.dumps(kept), redact=True)

    def _take_back(self, row):
        if row.status == self.IN_PROGRESS:
            self._withdraw_row(row)

    def _withdraw_row(self, row):
        """Delete a row whose action counts no more, and what goes with it."""
        LOG.info(
            '%(deployment)s: %(action)s is taken back from server %(server)s',
            {
                'deployment': self._label,
                'action': row.action,
                'server': row.server_id,
            },
        )
        # Its server may have fetched it, and have done some of it.
        self.data_set(UNDO_KEY, row.action)
        self._keep_inputs(row)
        self._delete_row()
        self._note_configs(self._delete_configs(self._made_configs(row)))
        # Unanswered, perhaps as a new image has an agent that names none.
        self.data_delete(NAMING_KEY)

    def _delete_row(self):
        with self.rpc_client().ignore_error_by_name('NotFound'):
            self.rpc_client().delete_software_deployment(
                self.context, self.resource_id
            )


def declared_outputs(config):
    """Return the outputs that a stored config declares."""
    return config.config[rpc_api.SOFTWARE_CONFIG_OUTPUTS] or []


def mask(config):
    """Return what masks the hidden parts of a stored config's inputs."""
    return hidden_inputs.mask(
        config.config[rpc_api.SOFTWARE_CONFIG_INPUTS],
        config.config[rpc_api.SOFTWARE_CONFIG_OPTIONS],
    )
