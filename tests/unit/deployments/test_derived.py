# SPDX-License-Identifier: Apache-2.0
"""What a server is given is what Heat's own classes derive."""

import dataclasses
import types

from heat.common import exception
from heat.engine import software_config_io
from heat.engine.resources.openstack.heat import software_deployment
from heat.engine.resources.openstack.heat import structured_config
import hypothesis
from hypothesis import strategies as st
import pytest

from heat_plugins import heat_values
from heat_plugins.deployments import deliveries
from heat_plugins.deployments import derived

names = st.text('abcd_', min_size=1, max_size=3)
scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.text(max_size=5)
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=2), st.dictionaries(names, inner, max_size=2)
    ),
    max_leaves=4,
)
references = st.builds(
    lambda key, name: {key: name},
    st.sampled_from(['get_input', 'other_key']),
    st.one_of(names, st.just('deploy_action')),
)
structures = st.recursive(
    st.one_of(values, references),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2), st.dictionaries(names, inner, max_size=2)
    ),
    max_leaves=5,
)
components = st.builds(
    lambda actions, tool, text: {
        'configs': [{'actions': actions, 'tool': tool, 'config': text}]
    },
    st.lists(st.sampled_from(['CREATE', 'BACKUP']), max_size=2),
    names,
    st.one_of(st.none(), st.text(max_size=5)),
)


@st.composite
def inputs(draw):
    """Return the inputs that a config declares, as templates have them."""
    made = []
    for name in draw(st.lists(names, unique=True, max_size=3)):
        each = {'name': name}
        kind = draw(st.sampled_from([None, 'String', 'Number', 'Json']))
        if kind is not None:
            each['type'] = kind
        if draw(st.booleans()):
            defaults = {'String': 'b', 'Number': 7, 'Json': {'c': [1]}}
            each['default'] = defaults.get(kind, 'a')
        if draw(st.booleans()):
            each['replace_on_change'] = draw(st.booleans())
        if draw(st.booleans()):
            each['description'] = 'What it is for'
        made.append(each)
    return made


@st.composite
def sources(draw):
    """Return a config as Heat's API shows it, and whether it is structured."""
    kind = draw(st.sampled_from(['plain', 'component', 'structured']))
    body = {
        'plain': st.one_of(st.none(), st.text(max_size=9), values),
        'component': components,
        'structured': structures,
    }[kind]
    groups = st.sampled_from([None, '', 'script'])
    return {
        'name': draw(st.sampled_from([None, 'a-config'])),
        'group': 'component' if kind == 'component' else draw(groups),
        'config': draw(body),
        'inputs': draw(inputs()),
        'outputs': [
            {'name': name, 'error_output': draw(st.booleans())}
            for name in draw(st.lists(names, unique=True, max_size=2))
        ],
        'options': draw(
            st.one_of(st.none(), st.dictionaries(names, values, max_size=1))
        ),
    }, kind == 'structured'


#: The credentials as Heat's own class returns them, with a region or without.
CREDENTIALS = {
    'auth_url': 'http://keystone',
    'username': 'stack-deployment-abc',
    'user_id': 'u',
    'password': 'secret',
    'project_id': 'p',
    'region_name': None,
}
SIGNALLINGS = (
    deliveries.NOTHING,
    deliveries.Signalling(
        transport='TEMP_URL_POLL',
        answers_by=deliveries.AnswersBy.OBJECT,
        url='http://swift/x',
    ),
    deliveries.Signalling(
        transport='CFN_SIGNAL',
        answers_by=deliveries.AnswersBy.ROW,
        verb='POST',
        url='http://cfn/x',
    ),
    *(
        deliveries.Signalling(
            transport='HEAT_SIGNAL',
            answers_by=deliveries.AnswersBy.ROW,
            credentials={**CREDENTIALS, 'region_name': region},
        )
        for region in (None, 'west')
    ),
    deliveries.Signalling(
        transport='ZAQAR_SIGNAL',
        answers_by=deliveries.AnswersBy.QUEUE,
        credentials=CREDENTIALS,
        queue_id='q',
    ),
)

ours = st.fixed_dictionaries(
    {
        'name': st.sampled_from([None, 'named']),
        'input_values': st.one_of(
            st.none(), st.dictionaries(names, values, max_size=3)
        ),
        'input_key': st.sampled_from(['get_input', 'other_key']),
        'input_values_validate': st.sampled_from(['LAX', 'STRICT']),
    }
)


def bare(kind):
    """Return a class of Heat's without its constructor, or a stack stored."""
    path = types.SimpleNamespace(stack_path=lambda: 'shop/1234')

    class Bare(kind):
        stack = types.SimpleNamespace(identifier=lambda: path)
        name = 'deployment'

        def __new__(cls, *args):
            return object.__new__(cls)

        def __init__(self, properties, signalling):
            self.properties = properties
            self.signalling = signalling

        def physical_resource_name(self):
            return 'shop-deployment-abc'

        def _get_ec2_signed_url(self):
            return self.signalling.url

        def _get_swift_signal_url(self):
            return self.signalling.url

        def _get_heat_signal_credentials(self):
            return self.signalling.credentials

        def _get_zaqar_signal_queue_id(self):
            return self.signalling.queue_id

    return Bare


HEATS = {
    False: bare(software_deployment.SoftwareDeployment),
    True: bare(structured_config.StructuredDeployment),
}


def declared(source):
    """Return the inputs and outputs of a config as Heat has them."""
    kinds = {
        'inputs': software_config_io.InputConfig,
        'outputs': software_config_io.OutputConfig,
    }
    return {
        name: [kind(**each) for each in source[name]]
        for name, kind in kinds.items()
    }


def heats_own(source, action, properties, signalling, is_structured):
    transport = signalling.transport.replace('_POLL', '_SIGNAL')
    given = {'server': 'server', 'signal_transport': transport}
    deployment = HEATS[is_structured]({**properties, **given}, signalling)
    return deployment._build_derived_config_params(  # noqa: SLF001
        action, {**source, **declared(source)}
    )


def derive(source, action, properties, signalling, is_structured):
    given = {**source, 'options': source['options'] or {}}
    for name, found in declared(source).items():
        given[name] = [each.as_dict() for each in found]
    return derived.heats(
        heat_values.DerivedConfig(**given),
        action,
        signalling,
        derived.Facts(
            server_id='server',
            stack_path='shop/1234',
            resource_name='deployment',
            physical_name='shop-deployment-abc',
            properties=properties,
            is_structured=is_structured,
        ),
    )


@hypothesis.settings(deadline=None, max_examples=150, derandomize=True)
@hypothesis.given(
    sources(),
    st.sampled_from(['CREATE', 'UPDATE', 'BACKUP']),
    ours,
    st.sampled_from(SIGNALLINGS),
)
def test_a_server_is_given_what_heats_own_class_derives(
    made_up, action, properties, signalling
):
    source, is_structured = made_up
    given = source, action, properties, signalling, is_structured
    try:
        expected = heats_own(*given)
    except exception.UserParameterMissing:
        with pytest.raises(derived.MissingInput):
            derive(*given)
        return
    shown = dataclasses.asdict(derive(*given))
    expected['options'] = expected['options'] or {}
    for each in expected['inputs']:
        if each['name'] == heat_values.TRANSPORT_INPUT:
            # So that Heat's own poller keeps out.
            each['value'] = signalling.transport
    assert shown == expected


def test_a_strict_template_lacks_no_input():
    source = {
        **dict.fromkeys(('name', 'group', 'options')),
        'config': {'a': {'get_input': 'who'}},
        'inputs': [],
        'outputs': [],
    }
    strict = {'input_values_validate': 'STRICT'}
    with pytest.raises(derived.MissingInput, match='who'):
        derive(source, 'CREATE', strict, deliveries.NOTHING, True)
