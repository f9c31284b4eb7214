# SPDX-License-Identifier: Apache-2.0
"""The profile "production": what a real cloud has and a small one leaves out.

Several heat-engines of several processes, and the parts of Mistral, as their
packages ship them, over RabbitMQ and MariaDB, with memcached, and TLS by
HAProxy on all public addresses. Those four are Debian's packages; they run
from the instance's own folder, on ports of its own, as the user who starts it.
"""
