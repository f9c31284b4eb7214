# SPDX-License-Identifier: Apache-2.0
"""The panel Runs."""

from django.utils.translation import gettext_lazy as _
import horizon


class Runs(horizon.Panel):
    name = _('Runs')
    slug = 'runs'
    permissions = ('openstack.services.orchestration',)
