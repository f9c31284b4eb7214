# SPDX-License-Identifier: Apache-2.0
"""Jinja templates are rendered into a plan, and can do nothing else."""

import os
import subprocess
from unittest import mock

import pytest
import testtools

from heat_plugins import errors
from heat_plugins.plans.rendering import jinja
from heat_plugins.plans.rendering import rendering

ROLES = b"""\
- name: Web
  tags: [front]
- name: Db
  disable_constraints: true
"""
NETWORKS = b"""\
- name: Public
- {name: Inner, name_lower: inside}
- {name: Dark, enabled: false}
"""


class RenderTest(testtools.TestCase):
    def render(self, **files):
        content = {
            'roles_data.yaml': ROLES,
            'network_data.yaml': NETWORKS,
            **{path: text.encode() for path, text in files.items()},
        }
        found = rendering.render(content)
        assert {path: found[path] for path in content} == content
        return {
            path: data.decode()
            for path, data in found.items()
            if path not in content
        }

    def refused(self, text, *words, **limits):
        limits = rendering.RenderingLimits(**limits)
        with pytest.raises(errors.Invalid) as caught:
            rendering.render({'x.j2.yaml': text.encode()}, limits)
        for word in words or ('x.j2.yaml',):
            assert word in str(caught.value)

    def test_a_name_says_for_what_it_is_rendered(self):
        roles = '{% for role in roles %}{{ role.name }} {% endfor %}'
        networks = '{% for n in networks %}{{ n.name_lower }} {% endfor %}'
        rendered = self.render(
            **{
                'a/x.j2.yaml': roles + networks,
                'a/x.role.j2.yaml': '{{role.name}}: {{role.tags}}',
                # Of old, roles were names alone.
                'b.role.j2.yaml': '{{role}} {{disable_constraints}}',
                'n/network_v6.network.j2.yaml': '{{network.name}}',
                'n/ports/port.network.j2.yaml': '{{network.name}}',
                'c.role.j2.yaml': '{{role.name}}',
                'j2_excludes.yaml': 'name: [db-c.yaml]',
                'd/x.j2.yaml': "{% include 'y.j2' %}{% include 'z' ~ 1 %}",
                'd/y.j2': 'beside ',
                'y.j2': 'wrong',
                'z1': 'root',
                'x.yaml': '{{ 1 }}',
            }
        )
        assert rendered == {
            'a/x.yaml': 'Web Db public inside dark ',
            'a/web-x.yaml': "Web: ['front']",
            'a/db-x.yaml': 'Db: ',
            'web-b.yaml': 'Web ',
            'db-b.yaml': 'Db True',
            'n/public_v6.yaml': 'Public',
            'n/inside_v6.yaml': 'Inner',
            'n/ports/public.yaml': 'Public',
            'n/ports/inside.yaml': 'Inner',
            'web-c.yaml': 'Web',
            'd/x.yaml': 'beside root',
        }

    def test_python_and_other_files_are_out_of_reach(self):
        for path in ('/etc/passwd', '../../../etc/passwd', 'nope'):
            self.refused(f"{{% include '{path}' %}}", 'TemplateNotFound')
        self.refused('{% if %}', 'x.j2.yaml', 'line 1', 'TemplateSyntaxError')
        for text in (
            "{{ ''.__class__.__mro__[1].__subclasses__() }}",
            '{{ cycler.__init__.__globals__.os.popen("id").read() }}',
        ):
            self.refused(text, 'Cannot render x.j2.yaml')
        formatted = "{{ '{0.__class__}'.format(roles) }}"
        for text in (formatted, '{{ roles.__class__ }}'):
            assert self.render(**{'x.j2.yaml': text}) == {'x.yaml': ''}

    def test_nothing_grows_out_of_proportion(self):
        for text in (
            "{{ 'a' * 2000000 }}",
            '{% for i in range(99999) %}{{ "x" * 99 }}{% endfor %}',
        ):
            self.refused(text)
        files = {'x.j2.yaml': "{{ 'a' * 3 }} {{ 2 * 3 }}"}
        assert self.render(**files) == {'x.yaml': 'aaa 6'}

    def test_a_role_s_name_leads_nowhere_else(self):
        for name in ('../../x', '.heat-plugins/x'):
            roles = f'[{{name: {name}}}]'.encode()
            files = {'x.role.j2.yaml': b'x', 'roles_data.yaml': roles}
            self.assertRaises(errors.Invalid, rendering.render, files)

    def test_one_template_changes_nothing_for_another(self):
        text = "{% if roles.append('x') %}{% endif %}{{ roles|length }}"
        found = self.render(**{'a.j2.yaml': text, 'b.j2.yaml': text})
        assert found == {'a.yaml': '3', 'b.yaml': '3'}

    def test_data_that_is_none_is_told(self):
        # YAML takes the last for a switch.
        wrong = ('{a: b}', '[1]', '[{}]', '[{name: Off}]')
        for path, text in (
            *(('roles_data.yaml', text) for text in wrong),
            ('network_data.yaml', '[1]'),
            *(('j2_excludes.yaml', text) for text in ('[a]', 'name: a')),
        ):
            files = {path: text.encode(), 'x.j2.yaml': b''}
            with pytest.raises(errors.Invalid, match=path):
                rendering.render(files)

    def test_what_takes_too_much_is_stopped(self):
        # One operation that no signal of Python interrupts.
        text = '{{ 2 ** (10 ** 9) % 3 ** (10 ** 7) }}'
        self.refused(text, '1 seconds', seconds=1)
        self.refused("{{ 'x' * 9999 }}", '9000 bytes', output=9000)
        for text in (
            "{{ 'a'|center(2000000000) }}",
            '{% set all = [] %}{% for a in range(99999) %}'
            "{% if all.append('x' * 99999 ~ a) %}{% endif %}{% endfor %}",
        ):
            self.refused(text, '128 MiB', memory=128 * 1024 * 1024)
        self.patch(jinja, '__name__', 'no.such.module')
        self.refused('x', 'ended with code 1')

    def test_it_knows_nothing_of_the_process_that_asked_for_it(self):
        real = subprocess.Popen
        with (
            mock.patch.dict(os.environ, OS_PASSWORD='geheim'),
            mock.patch.object(subprocess, 'Popen', side_effect=real) as popen,
        ):
            self.render(**{'x.j2.yaml': 'x'})
        (begun,) = popen.call_args_list
        assert begun.kwargs['env'].keys() == {'PYTHONPATH'}
