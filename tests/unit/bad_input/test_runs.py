# SPDX-License-Identifier: Apache-2.0
"""Whatever is asked of a run, sent by one, or put among their records."""

import dataclasses
import datetime
import json

import hypothesis
from hypothesis import strategies as st
import pytest

from heat_plugins import errors
from heat_plugins import heat_values
from heat_plugins.configs import actions
from heat_plugins.objectstore import json_records
from heat_plugins.runs import attempts
from heat_plugins.runs import run_objects
from heat_plugins.runs import runs
from heat_plugins.runs import summary
from heat_plugins.runs.records import record_names
from heat_plugins.runs.start import orders
from heat_plugins.runs.start import schema
from heat_plugins.runs.start import targets
from heat_plugins.signals import body
from tests.unit import fake_swift
from tests.unit.bad_input import anything

SIGNATURE = '0123456789abcdef' * 4

identifier = anything.plain_text.map(lambda text: text.replace('/', ''))

run_id = st.one_of(
    st.from_regex(r'[0-9]{8}T[0-9]{6}Z-[0-9a-f]{8}', fullmatch=True),
    st.datetimes(datetime.datetime(1970, 1, 2)).map(
        lambda when: record_names.new_run_id(
            when.replace(tzinfo=datetime.UTC).timestamp()
        )
    ),
    anything.odd_text,
)

action = anything.plain_text.filter(bool)


# Names


@hypothesis.given(run_id)
def test_a_run_id_has_a_time_or_is_none(text):
    if record_names.is_run_id(text):
        assert isinstance(record_names.started_at(text), int)


@hypothesis.given(run_id.filter(record_names.is_run_id), identifier, action)
def test_what_a_name_says_is_read_from_it(run, deployment, what):
    key = record_names.Key(run_id=run, deployment_id=deployment, action=what)
    assert record_names.parse_open(record_names.open_name(key)) == key
    assert record_names.parse_record(record_names.record_name(key)) == key
    assert record_names.signal_of_run(body.report_name(key.signal)) == run


@hypothesis.given(
    st.lists(
        st.one_of(
            anything.plain_text,
            st.builds('{}{}/{}/{}'.format, *[anything.plain_text] * 3, run_id),
            st.builds('{}/{}/{}'.format, run_id, identifier, action),
        )
    ),
    st.floats(0, 2**33),
)
def test_names_that_others_have_put_there_are_passed_over(found, now):
    for prefix, parse in (
        (record_names.OPEN, record_names.parse_open),
        (record_names.RECORDS, record_names.parse_record),
    ):
        keys = [key for one in found if (key := parse(prefix + one))]
        record_names.Retention(number=1).surplus(keys, (), now)
    for one in found:
        record_names.signal_of_run(one)


# What is asked

declared_input = st.fixed_dictionaries(
    {'name': anything.plain_text.filter(bool)},
    optional={
        'type': anything.spelled(
            'String', 'Number', 'Json', 'Boolean', 'CommaDelimitedList'
        ),
        'default': anything.json_value,
        'value': anything.json_value,
    },
)


@st.composite
def asked(draw):
    """Return declared inputs, the stack's values, and what is asked for."""
    declared = draw(st.lists(declared_input, max_size=4))
    known = st.sampled_from([one['name'] for one in declared] or ['x'])
    value = st.one_of(anything.json_value, anything.json_text)
    values = st.dictionaries(
        st.one_of(known, known, anything.odd_text), value, max_size=4
    )
    return declared, draw(values), draw(values)


@hypothesis.given(asked())
@hypothesis.example(([{'name': 'a', 'type': 'Json'}], {}, {'a': '[' * 10**5}))
@hypothesis.example(
    ([{'name': 'a', 'type': 'Number'}], {}, {'a': float('inf')})
)
@hypothesis.example(([{'name': 'a', 'type': 'Json'}], {}, {'a': '[NaN]'}))
def test_inputs_fit_what_is_declared_or_are_refused(both):
    declared, current, given = both
    try:
        values = schema.values(declared, given, current)
    except errors.Refused:
        return
    for name in given.keys() & values.keys():
        json.dumps(values[name], allow_nan=False)


@hypothesis.given(anything.json_value, st.sampled_from(['Json', 'Number']))
def test_no_refusal_quotes_a_value(value, kind):
    secret = f'hunter2-correct-{value!r}'
    with pytest.raises(errors.Refused) as caught:
        schema.values(
            [{'name': 'a', 'type': kind}], {'a': secret}, {'a': secret}
        )
    assert 'hunter2' not in str(caught.value)


entry = anything.map_of(
    actions=anything.nested(anything.spelled('BACKUP', 'CREATE')),
    tool=anything.scalar,
    config=anything.json_value,
)

component = st.one_of(
    st.fixed_dictionaries({'configs': st.lists(entry, max_size=4)}),
    anything.map_of(configs=anything.json_value),
)


def target(group, config, declared):
    return targets.Target(
        stack_id='stack',
        stack_name='stack',
        resource='deployment',
        deployment_id='id',
        server_id='server',
        config_id='config',
        config=heat_values.Config(
            id='config',
            name='config',
            group=group,
            config=config,
            inputs=declared,
            outputs=[],
            options={},
        ),
        declared=declared,
    )


@hypothesis.given(
    anything.spelled('component', 'script'),
    component,
    asked(),
    anything.spelled('BACKUP', 'CREATE'),
)
def test_an_order_can_be_run_or_is_refused(group, config, inputs, what):
    declared, _, given = inputs
    found = target(group, config, declared)
    try:
        chosen, _values = orders.check(
            found, orders.RunOrder(action=what, inputs=given)
        )
    except errors.Refused:
        return
    assert chosen.name == what
    assert actions.serves(group, config, what)


# What a server sends


@hypothesis.given(
    st.one_of(
        anything.body,
        anything.map_of(
            progress=anything.scalar, message=anything.json_value
        ).map(lambda value: json.dumps(value).encode()),
    )
)
@hypothesis.example(b'{"progress": 1' + b'0' * 400 + b'}')
def test_a_report_can_be_shown_or_is_refused(content):
    try:
        progress, message = attempts.parse_report(content)
    except errors.BadContent:
        return
    assert progress is None or 0 <= progress <= 100
    assert message is None or message.isprintable()


leaky = st.builds(
    '{}https://swift/v1/c/o?temp_url_sig={}{}{}'.format,
    anything.plain_text,
    st.just(SIGNATURE),
    st.sampled_from(['', '&temp_url_expires=1', '"', "'", '\\', '\n', ' ']),
    anything.plain_text,
)


@hypothesis.given(
    st.dictionaries(
        anything.plain_text,
        anything.nested(st.one_of(leaky, anything.scalar), keys=leaky),
        max_size=4,
    )
)
@hypothesis.example({'out': f'curl "https://x?temp_url_sig={SIGNATURE}"'})
def test_no_run_keeps_a_signature_that_a_server_has_sent(outputs):
    try:
        details = body.as_map(outputs)
    except errors.BadContent:
        return
    cluster = fake_swift.Cluster()
    store = cluster.store()
    store.put_container('box', {})
    kept = run_objects.RunObjects(
        store, 'box', result='result', log='log/', outputs='outputs'
    ).keep(body.outcome(details, [{'name': name} for name in details]))
    objects = cluster.container('box').objects
    text = json.dumps(kept['outputs']) + str(objects.get('outputs'))
    assert SIGNATURE not in text
    assert kept['outputs'].keys() >= details.keys()


# What others put among the records

record = st.one_of(
    anything.map_of(
        id=run_id,
        stack_id=anything.scalar,
        stack_name=anything.scalar,
        resource=anything.scalar,
        deployment_id=anything.scalar,
        server_id=anything.scalar,
        action=anything.scalar,
        state=anything.spelled(*[state.value for state in runs.State]),
        reason=anything.scalar,
        started_at=anything.scalar,
        started_by=anything.scalar,
        timeout=anything.scalar,
        inputs=anything.json_value,
        declared=anything.json_value,
        ended_at=anything.scalar,
        progress=anything.scalar,
        outputs=anything.json_value,
        cut=anything.json_value,
        late=anything.json_value,
    ).map(lambda value: json.dumps(value).encode()),
    anything.body,
)

whole = runs.Run(
    id='20300101T000000Z-00000000',
    stack_id='stack',
    stack_name='stack',
    resource='deployment',
    deployment_id='deployment',
    server_id='server',
    action='BACKUP',
    state=runs.State.RUNNING,
    reason='It runs',
    started_at=1893456000,
    started_by='demo',
    timeout=60,
)

store = fake_swift.Cluster().store()
store.put_container('stack', {})


def read(content):
    store.put_object('stack', 'run', content)
    found = json_records.Records(store, 'stack').fetch('run')
    return runs.Run.read(found.value)


def again(run):
    return read(json.dumps(dataclasses.asdict(run)).encode())


@hypothesis.given(
    st.one_of(
        record,
        # All is right but one thing.
        st.builds(
            lambda name, value: json.dumps(
                {**dataclasses.asdict(whole), name: value}
            ).encode(),
            st.sampled_from(sorted(dataclasses.asdict(whole))),
            anything.json_value,
        ),
    )
)
def test_a_record_can_be_shown_or_is_none(content):
    try:
        found = read(content)
    except ValueError:
        return
    json.dumps(summary.of(found))
    body.outcome({}, found.declared)
    assert found.ended in (True, False)
    assert found.deadline >= found.started_at
    assert again(found) == found


def test_a_record_that_is_whole_is_read():
    assert again(whole).key == whole.key
