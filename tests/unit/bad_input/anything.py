# SPDX-License-Identifier: Apache-2.0
"""What people, servers and programs may send, as hypothesis makes it up."""

import json

from hypothesis import strategies as st

#: Texts that have broken one reader or another.
ODD = (
    '', ' ', '\0', '\n', '\t', '\x1b[31m', '\x7f', '\x85', '\u2028', '\u202e',
    '\ufeff', '\ud800', '\udfff', '\U0001f4a3', 'é', 'e\u0301', '${IFS}',
    '$(id)', '%s', '%', '%00', '%2F', '{}', '{{ x }}', '<% $ %>', '../', '/',
    '//', '?', '#', '&', "'", '"', '\\', '~', 'null', 'true', 'NaN', '-0',
    '1e999', '9' * 400, '9' * 5000, '!!bool x', '*a', '&a', 'a' * 256,
    'é' * 128, '\U0001f4a3' * 64,
)  # fmt: skip

odd_text = st.one_of(
    st.sampled_from(ODD),
    st.text(max_size=20),
    st.text(st.characters(codec=None), max_size=20),
    st.lists(st.sampled_from(ODD), max_size=4).map(''.join),
)

#: A text that can be sent: UTF-8 has no half characters.
plain_text = odd_text.map(
    lambda text: text.encode('utf-8', 'replace').decode()
)

number = st.one_of(
    st.integers(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.sampled_from([10**400, -(10**400), 2**31, 2**63, -1, 0]),
)

scalar = st.one_of(st.none(), st.booleans(), number, odd_text)


def nested(leaf, keys=odd_text, leaves=12):
    """Return lists and maps of something, and that itself."""
    return st.recursive(
        leaf,
        lambda inner: st.one_of(
            st.lists(inner, max_size=4),
            st.dictionaries(keys, inner, max_size=4),
        ),
        max_leaves=leaves,
    )


#: Whatever JSON can say, and Python's reader of it lets through.
json_value = nested(scalar)

json_map = st.dictionaries(odd_text, json_value, max_size=5)


def deep(depth):
    """Return JSON that is nested so deeply, in lists and in maps."""
    lists, maps = ('[', ']'), ('{"a":', '}')
    whole = [a * depth + '1' + b * depth for a, b in (lists, maps)]
    return st.sampled_from([*whole, '[' * depth])


#: Texts that are JSON, nearly, or not at all.
json_text = st.one_of(
    json_value.map(json.dumps),
    json_value.map(lambda value: json.dumps(value, ensure_ascii=False)),
    odd_text,
    st.sampled_from([10, 65, 1000, 100000]).flatmap(deep),
    json_map.map(json.dumps).flatmap(
        lambda text: st.integers(0, len(text)).map(lambda n: text[:n])
    ),
)

#: What a connection may carry.
body = st.one_of(
    st.binary(max_size=200),
    json_text.map(lambda text: text.encode('utf-8', 'surrogatepass')),
    json_text.map(lambda text: text.encode('utf-16', 'surrogatepass')),
)


def spelled(*names):
    """Return one of some names, mostly, or something else."""
    return st.one_of(st.sampled_from(names), st.sampled_from(names), odd_text)


def map_of(**values):
    """Return a map that has some of the keys, and perhaps other ones."""
    return st.one_of(
        st.fixed_dictionaries({}, optional=values),
        st.fixed_dictionaries(values),
        st.builds(
            lambda known, more: {**more, **known},
            st.fixed_dictionaries({}, optional=values),
            st.dictionaries(odd_text, json_value, max_size=2),
        ),
        json_value,
    )


#: YAML that its reader in Python makes errors of its own from.
YAML = (
    '!!bool x', '!!int ""', '!!int "_"', '!!float ""', '!!float x',
    '!!timestamp x', '!!binary x', '!!binary é', '!!python/name:os.system ',
    '!!set {a, b}', '!!omap [a: 1]', '!!pairs [a]', '=', '<<: a', '? [a]\n: b',
    '? {a: b}\n: c', '2001-02-31', '2001-02-03 04:05:06+99:99',
    '9999-12-31 23:59:59-23:59', '[' * 2000, '{a: ' * 2000, '- ' * 2000,
    '9' * 5000, '0x' + 'f' * 5000, '1:' * 2000 + '1', '.inf', '.nan', '\t',
    '%YAML 3.0\n---\na', '--- a\n--- b', '&a [*a]', '{a: 1, a: 2}',
    '"\\ud800"', '|\n a', "'", '!<', '@', '`',
)  # fmt: skip
