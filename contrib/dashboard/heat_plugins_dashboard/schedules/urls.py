# SPDX-License-Identifier: Apache-2.0
"""The addresses of the panel Schedules."""

from django.urls import path

from heat_plugins_dashboard.schedules import views

urlpatterns = [
    path('', views.IndexView.as_view(), name='index'),
    path(
        '<str:stack>/<str:schedule>/',
        views.DetailView.as_view(),
        name='detail',
    ),
    path(
        '<str:stack>/<str:schedule>/pause',
        views.PauseView.as_view(),
        name='pause',
    ),
]
