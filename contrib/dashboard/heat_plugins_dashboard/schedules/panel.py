# SPDX-License-Identifier: Apache-2.0
"""The panel Schedules."""

from django.utils.translation import gettext_lazy as _
import horizon


class Schedules(horizon.Panel):
    name = _('Schedules')
    slug = 'schedules'
    permissions = ('openstack.services.orchestration',)
