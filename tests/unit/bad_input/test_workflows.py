# SPDX-License-Identifier: Apache-2.0
"""Whatever a template says of workflows, and a signal asks of them."""

import datetime
import json

import hypothesis
from hypothesis import strategies as st
import yaml

from heat_plugins import bounds
from heat_plugins.mistral.definitions import definition_checking
from heat_plugins.mistral.definitions import definition_reading
from heat_plugins.mistral.definitions import definition_records
from heat_plugins.mistral.definitions import renaming
from heat_plugins.mistral.definitions import structured
from heat_plugins.mistral.executions import workflow_requests
from heat_plugins.mistral.triggers import cron_triggers
from heat_plugins.mistral.triggers import schedule
from tests.unit.bad_input import anything

#: YAML that its reader in Python makes errors of its own from.
YAML = (
    '!!bool x',
    '!!int ""',
    '!!int "_"',
    '!!float ""',
    '!!float x',
    '!!timestamp x',
    '!!binary x',
    '!!binary é',
    '!!python/name:os.system ',
    '!!set {a, b}',
    '!!omap [a: 1]',
    '!!pairs [a]',
    '=',
    '<<: a',
    '? [a]\n: b',
    '? {a: b}\n: c',
    '2001-02-31',
    '2001-02-03 04:05:06+99:99',
    '9999-12-31 23:59:59-23:59',
    '[' * 2000,
    '{a: ' * 2000,
    '- ' * 2000,
    '9' * 5000,
    '0x' + 'f' * 5000,
    '1:' * 2000 + '1',
    '.inf',
    '.nan',
    '\t',
    '%YAML 3.0\n---\na',
    '--- a\n--- b',
    '&a [*a]',
    '{a: 1, a: 2}',
    '"\\ud800"',
    '|\n a',
    "'",
    '!<',
    '@',
    '`',
)

task = anything.map_of(
    action=anything.json_value,
    workflow=anything.json_value,
    join=anything.scalar,
    input=anything.json_value,
    retry=anything.json_value,
    **{
        'on-success': anything.nested(anything.spelled('one', 'two')),
        'on-error': anything.json_value,
        'with-items': anything.json_value,
        'publish': anything.json_value,
        'requires': anything.json_value,
    },
)

workflow = anything.map_of(
    type=anything.spelled('direct', 'reverse'),
    input=anything.json_value,
    output=anything.json_value,
    tasks=st.one_of(
        st.dictionaries(anything.spelled('one', 'two'), task, max_size=3),
        anything.json_value,
    ),
    **{'task-defaults': task},
)

content = st.one_of(
    st.dictionaries(
        anything.spelled('one', 'two', 'workflows', 'actions', 'name'),
        workflow,
        max_size=3,
    ),
    st.builds(
        lambda version, one: {'version': version, 'hello': one},
        anything.scalar,
        workflow,
    ),
    anything.map_of(
        version=anything.scalar,
        name=anything.scalar,
        workflows=st.dictionaries(anything.plain_text, workflow, max_size=2),
        actions=anything.json_value,
    ),
)


def dumped(value):
    return yaml.safe_dump(value, allow_unicode=True, sort_keys=False)


definition = st.one_of(
    content.map(dumped),
    content.map(json.dumps),
    anything.odd_text,
    st.sampled_from(YAML),
    st.builds(
        'hello: {{tasks: {{one: {{action: std.noop, {}: {}}}}}}}'.format,
        anything.spelled('join', 'input', 'on-success'),
        st.sampled_from(YAML),
    ),
    st.builds('version: {}\nhello: {}\n'.format, *[st.sampled_from(YAML)] * 2),
)


def read(text):
    """Read a definition; None if it is refused as it should be."""
    try:
        found = definition_reading.read(text)
    except definition_reading.DefinitionError:
        return None
    return None if definition_checking.check(found) else found


@hypothesis.given(definition)
@hypothesis.example(f'version: {"9" * 400}\na: {{tasks: {{}}}}')
@hypothesis.example(f'version: 0x{"f" * 5000}\na: {{tasks: {{}}}}')
@hypothesis.example('a: !!bool x')
@hypothesis.example('a: !!timestamp x')
@hypothesis.example('a: !!int ""')
def test_a_definition_is_read_or_refused(text):
    read(text)


@hypothesis.given(
    definition,
    anything.plain_text.filter(bool),
    st.dictionaries(anything.spelled('a', 'b'), anything.json_value),
)
def test_what_is_read_can_be_written_under_other_names(text, name, defaults):
    found = read(text)
    if found is None:
        return
    try:
        if found.workbook:
            again = renaming.render_book(found, name, defaults)
        else:
            names = {one: f'{name}.{one}' for one in found.workflows}
            again = renaming.render(found, names, None, defaults)
    except definition_reading.DefinitionError:
        return
    assert isinstance(again, str)


@hypothesis.given(
    anything.plain_text.filter(bool),
    anything.map_of(
        type=anything.spelled('direct', 'reverse'),
        description=anything.scalar,
        output=anything.json_value,
        input=anything.json_map,
        vars=anything.json_map,
        tasks=st.lists(
            st.builds(
                lambda name, more: {**more, 'name': name},
                anything.plain_text,
                st.dictionaries(
                    anything.spelled('action', 'on_success', 'timeout'),
                    anything.json_value,
                    max_size=4,
                ),
            ),
            max_size=3,
        ),
    ).filter(lambda value: isinstance(value, dict)),
)
def test_properties_are_written_as_a_definition_that_is_read(name, given):
    hypothesis.assume(
        isinstance(given.get('input', {}), dict)
        and isinstance(given.get('tasks', []), list)
        and all(isinstance(one, dict) for one in given.get('tasks', []))
    )
    structured.doubles(given)
    try:
        read(structured.definition(name, given))
    except definition_reading.DefinitionError:
        return


@hypothesis.given(
    st.one_of(
        definition,
        st.dictionaries(anything.plain_text, content, max_size=2).map(dumped),
        anything.map_of(
            base=anything.json_value, input=anything.json_value
        ).map(lambda spec: dumped({'version': '2.0', 'a': spec})),
    )
)
@hypothesis.example('a: !!bool x')
@hypothesis.example('9' * 5000)
@hypothesis.example('[' * 5000)
@hypothesis.example('? [a]\n: {base: std.noop}')
def test_an_ad_hoc_action_is_read_or_refused(text):
    try:
        spec = structured.read_action(text)
    except structured.AdhocError:
        return
    structured.base_name(spec)
    structured.write_action('name', spec)


# Signals

ONE = workflow_requests.WorkflowOffer(
    workflows={
        'one': definition_reading.DefinedWorkflow(
            name='one', type='direct', inputs={}, data={}
        )
    },
    names={'one': 'stack.one'},
    inputs={},
    params={},
)

offer = st.builds(
    lambda declared, inputs, params, whole, kind: (
        workflow_requests.WorkflowOffer(
            workflows={
                'one': definition_reading.DefinedWorkflow(
                    name='one', type=kind, inputs=declared, data={}
                )
            },
            names={'one': 'stack.one'},
            inputs=inputs,
            params=params,
            body_is_input=whole,
        )
    ),
    st.dictionaries(
        anything.odd_text,
        st.one_of(st.just(definition_reading.REQUIRED), anything.json_value),
        max_size=3,
    ),
    anything.json_map,
    anything.json_map,
    st.booleans(),
    st.sampled_from(['direct', 'reverse']),
)


@hypothesis.given(
    st.one_of(
        anything.json_value,
        anything.map_of(
            workflow=anything.spelled('one', 'stack.one'),
            input=anything.json_value,
            params=anything.json_value,
            description=anything.scalar,
        ),
    ),
    offer,
)
@hypothesis.example({'workflow': '\U0001f4a3' * 20000}, ONE)
@hypothesis.example({'\U0001f4a3' * 99 + str(n): n for n in range(99)}, ONE)
def test_a_signal_runs_a_workflow_or_is_refused(body, offer):
    entry = {
        'time': '2030-01-01T00:00:00Z',
        'workflow': None,
        'execution_id': None,
        'error': None,
        'ignored': [],
    }
    try:
        run = workflow_requests.asked(body, offer)
        entry['ignored'] = list(run.ignored)
    except workflow_requests.RunError as exc:
        entry['error'] = str(exc)
    # What is remembered of it fits a row of Heat's database.
    assert len(workflow_requests.write_log(entry).encode()) < 20000
    assert workflow_requests.read_log(
        {'signal.1': workflow_requests.write_log(entry)}
    )
    said = bounds.shortened(f'Signal failed: {entry["error"]}', 255)
    assert len(said) <= 255


# The clock

pattern = st.one_of(
    st.lists(
        anything.spelled(
            '*', '0', '59', '60', '*/5', '*/0', '1-5', '5-1', 'mon', 'L', '?'
        ),
        min_size=4,
        max_size=7,
    ).map(' '.join),
    anything.odd_text,
    st.sampled_from(['@hourly', '@reboot', '0 0 31 2 *', '* * * * * * 2199']),
)


@hypothesis.given(
    pattern,
    st.one_of(
        st.datetimes().map(lambda when: when.strftime('%Y-%m-%d %H:%M')),
        anything.odd_text,
        st.sampled_from(['9999-12-31 23:59', '0001-01-01 00:00']),
    ),
    st.one_of(st.none(), st.integers(1, 10**12)),
)
@hypothesis.example('* * * * *', '9999-12-31 23:59', None)
@hypothesis.example('0 0 29 2 *', '9999-12-31 23:59', 5)
def test_a_schedule_has_times_or_is_refused(pattern, first, count):
    now = datetime.datetime(2030, 1, 1)
    try:
        times = schedule.upcoming(pattern, now)
        assert sorted(times) == list(times)
        schedule.show(*times)
    except schedule.ScheduleError:
        pattern = None
    try:
        when = schedule.first_time(first)
    except schedule.ScheduleError:
        when = None
    try:
        schedule.next_runs(pattern, when, count, now)
        schedule.has_expired(pattern, when, count, now, now)
    except schedule.ScheduleError:
        assert when is not None


@hypothesis.given(anything.json_map, anything.json_map, anything.plain_text)
def test_what_is_remembered_of_a_trigger_is_read_again(given, params, name):
    order = cron_triggers.TriggerOrder(
        name=name,
        workflow=name,
        input=given,
        params=params,
        pattern='* * * * *',
        first_time=None,
        count=None,
    )
    record = cron_triggers.TriggerRecord(
        id='id', wanted=order, order=order, made='2030-01-01T00:00:00'
    )
    again = cron_triggers.read_record(cron_triggers.dumps(record))
    assert cron_triggers.dumps(again) == cron_triggers.dumps(record)


@hypothesis.given(st.text(min_size=1, max_size=300))
def test_names_fit_into_mistral_or_are_refused(name):
    found = read(f'? {json.dumps(name)}\n: {{tasks: {{a: {{action: b.c}}}}}}')
    if found is None:
        return
    try:
        wanted = definition_records.WantedDefinition.of(
            found, 'stack', 'resource', None, None
        )
    except definition_reading.DefinitionError:
        return
    assert set(wanted.names) == set(found.workflows)
    assert definition_records.NAME_LIMIT >= 255
