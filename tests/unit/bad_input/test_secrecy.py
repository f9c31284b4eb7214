# SPDX-License-Identifier: Apache-2.0
"""Whatever a server answers, and a template hides, nothing of it is told."""

import json
import logging
import os
import re

import fixtures
import hypothesis
from hypothesis import strategies as st

from tests.unit.bad_input import anything
from tests.unit.resources import deployments

#: What a template hides, and what a server has read from its disk.
PASSWORD, READ = 'hunter2-correct-horse', 'root:$6$battery$staple'

# As Python names what it raises; Heat puts it before the reason.
PYTHONS = re.compile(
    r'\b(Attribute|Key|Index|Type|Value|Recursion|Overflow|Unicode\w*|'
    r'Lookup|Assertion|Runtime|JSONDecode|DBData)Error\b'
)

#: A stack takes a fifth of a second.
LOOKS = {'few': 3, 'long': 2000}.get(os.environ.get('BAD_INPUT', ''), 10)

answer = st.one_of(
    st.just(b''),
    anything.body.map(lambda content: content + READ.encode()),
    st.builds(
        lambda details, name, value: json.dumps(
            {**(details if isinstance(details, dict) else {}), name: value}
        ).encode(),
        anything.json_map,
        st.sampled_from(['answer', 'trouble', 'deploy_status_code']),
        anything.nested(st.sampled_from([READ, f'{READ} {PASSWORD}', ''])),
    ),
)


class SecrecyTest(deployments.DeploymentTestCase):
    def setUp(self):
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger(level=logging.DEBUG))

    @hypothesis.given(answer)
    @hypothesis.settings(max_examples=LOOKS)
    def test_no_answer_is_told_and_none_raises_an_error_of_python(self, body):
        self.answer = body
        self.log.reset_output()
        stack = self.heat.stack(
            deployments.template(input_values={'who': PASSWORD})
        )
        self.finish(self.heat.begin(stack, 'CREATE'))
        assert stack.status in ('COMPLETE', 'FAILED')
        held = *self.deployment_rows(), stack, stack['deployment']
        told = [each.status_reason for each in held]
        told += deployments.events(stack)
        urls = [
            deployments.inputs(config).get('deploy_signal_id')
            for config in self.handed
        ]
        signatures = re.findall('temp_url_sig=([0-9a-f]+)', str(urls))
        assert signatures
        assert 'waits for a signal' in self.log.output
        for said in map(str, told):
            assert PYTHONS.search(said) is None, said
            assert len(said) < 400
        for said in (*map(str, told), self.log.output):
            for secret in (PASSWORD, READ, *signatures):
                assert secret not in said
        self.handed.clear()
        self.heat.delete(stack)
