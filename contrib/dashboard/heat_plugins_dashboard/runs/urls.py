# SPDX-License-Identifier: Apache-2.0
"""The addresses of the panel Runs."""

from django.urls import path

from heat_plugins_dashboard.runs import views

urlpatterns = [
    path('', views.IndexView.as_view(), name='index'),
    path('start', views.ChooseView.as_view(), name='choose'),
    path('start/form', views.StartView.as_view(), name='start'),
    path('<uuid:run>/', views.DetailView.as_view(), name='detail'),
    path('<uuid:run>/cancel', views.CancelView.as_view(), name='cancel'),
    path(
        '<uuid:run>/<int:number>/cancel',
        views.CancelView.as_view(),
        name='cancel_target',
    ),
    path('<uuid:run>/outputs.zip', views.outputs, name='outputs'),
    path(
        '<uuid:run>/<int:number>/', views.TargetView.as_view(), name='target'
    ),
]
