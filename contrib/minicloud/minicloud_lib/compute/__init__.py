# SPDX-License-Identifier: Apache-2.0
"""What ``up --with compute`` adds: Nova, Placement and Glance.

One process holds Placement, Nova's conductor, scheduler, compute and API;
another one is Glance. Nova's servers are the mini cloud's agents.
"""
