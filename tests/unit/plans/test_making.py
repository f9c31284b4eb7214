# SPDX-License-Identifier: Apache-2.0
"""Plans are made in full, once, or not at all; their files are checked."""

import pathlib

import pytest
import testtools

from heat_plugins import errors
from heat_plugins.content import sources
from heat_plugins.plans import plan_claims
from heat_plugins.plans import plan_operations
from heat_plugins.plans.content import references
from tests.unit.plans import fakes

LOCK = 'plan-lock:plan'

SMALL = {'content': {'a.yaml': b'{}'}, 'template': 'a.yaml'}


class CreateTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.cloud = fakes.Cloud()
        self.plans = self.cloud.plans

    def create(self, name='plan', **options):
        return self.plans.create(name, fakes.content(), **options)

    def leave_half(self):
        """Leave what a process leaves that was killed in mid-creation."""
        self.cloud.swift.before = self._after(2, for_good=True)
        self.assertRaises(ZeroDivisionError, self.create)
        self.cloud.swift.before = lambda request: None

    def _after(self, uploads, *, for_good=False):
        """Die after some uploads; do not even undo anything, if so."""

        def before(request):
            nonlocal uploads
            if request.method == 'PUT' and request.body is not None:
                uploads -= 1
            if uploads < 0 and (for_good or request.method == 'PUT'):
                raise ZeroDivisionError

        return before

    def test_a_plan_is_its_files_in_a_container_of_its_name(self):
        seen = []
        plan = self.create(progress=lambda *done: seen.append(done))
        files = len(fakes.content()) - 1
        assert seen == [(n + 1, files) for n in range(files)]
        assert self.cloud.uploads()[-1] == 'plan-environment.yaml'
        assert set(self.cloud.objects()) == set(fakes.content())
        assert set(plan.entries) == set(fakes.content())
        made = plan.environment
        found = made.name, made.description, made.enabled
        assert found == ('plan', 'A test', ('base.yaml',))

    def test_a_name_that_is_taken_is_left_alone(self):
        def refused(said, **options):
            error = self.assertRaises(errors.Exists, self.create, **options)
            assert said in str(error)

        self.create()
        refused('Plan plan exists already')
        refused('Plan plan exists already', resume=True)
        self.plans.delete('plan')
        store = self.cloud.swift.store()
        store.put_container('plan', {})
        store.put_object('plan', 'theirs', b'1')
        refused('is not a plan')
        assert self.cloud.objects() == {'theirs': b'1'}
        assert self.cloud.registry.records == {}
        theirs = self.cloud.registry.records['plan'] = plan_claims.Record(
            name='plan', description='', values={'x': 1}
        )
        refused('not a plan')
        assert self.cloud.registry.records == {'plan': theirs}
        assert self.cloud.objects() == {'theirs': b'1'}

    def test_what_is_given_goes_over_what_the_files_say(self):
        plan = self.create(template='nodes/node.yaml', description='Mine')
        assert plan.environment.template == 'nodes/node.yaml'
        assert self.plans.summaries()[0].description == 'Mine'
        # Without its environment a root template is needed.
        files = fakes.content(**{'plan-environment.yaml': None})
        with pytest.raises(errors.Invalid, match='root template'):
            self.plans.create('other', files)
        plan = self.plans.create('other', files, template='root.yaml')
        assert plan.environment.environments == ()

    def test_a_plan_without_its_root_template_or_environment_is_refused(self):
        for path in ('root.yaml', 'base.yaml'):
            with pytest.raises(errors.Invalid, match=path):
                self.plans.create('plan', fakes.content(**{path: None}))
        self.assertRaises(errors.Invalid, self.create, '1abc')
        assert self.cloud.swift.asked() == []

    def test_of_two_at_once_one_wins_and_the_other_is_told(self):
        told = []

        def overtake(request):
            self.cloud.swift.before = lambda request: None
            with pytest.raises(errors.PlanUnfinished) as caught:
                self.cloud.service().create('plan', **SMALL)
            told.append(str(caught.value))

        self.cloud.swift.before = overtake
        self.create()
        assert 'is being created since 2027-' in told[0]
        assert set(self.cloud.objects()) == set(fakes.content())

    def test_what_fails_is_undone(self):
        self.cloud.swift.fail(times=4, status=403, method='PUT')
        self.assertRaises(errors.Denied, self.create)
        self.cloud.swift.heal()
        self.cloud.swift.before = self._after(3)
        self.assertRaises(ZeroDivisionError, self.create)
        assert self.cloud.objects() is None
        assert self.cloud.registry.records == {}
        self.cloud.registry.failing['delete'] = errors.Unavailable('gone')
        self.cloud.swift.before = self._after(1)
        error = self.assertRaises(ZeroDivisionError, self.create)
        assert 'Cannot undo the incomplete' in error.__notes__[0]
        self.cloud.registry.failing.clear()
        self.cloud.swift.before = lambda request: None
        self.cloud.now += 900
        self.create(resume=True)
        # A name is ours if Mistral breaks off after taking it.
        self.cloud.registry.failing['create'] = errors.Unavailable('cut')
        claims = plan_claims.Claims(self.cloud.registry)
        assert claims.take('other', '') is not None
        self.assertRaises(errors.Unavailable, claims.take, 'other', '')

    def test_what_broke_off_is_told_and_can_be_resumed(self):
        self.leave_half()
        self.assertRaises(errors.PlanUnfinished, self.plans.load, 'plan')
        error = self.assertRaises(errors.PlanUnfinished, self.create)
        assert 'resume' in str(error)
        there = set(self.cloud.objects())
        assert len(there) == 2
        sent = len(self.cloud.uploads())
        self.create(resume=True)
        assert set(self.cloud.objects()) == set(fakes.content())
        again = self.cloud.uploads()[sent:]
        assert there & set(again) == set()
        # With other files it has only those.
        self.plans.delete('plan')
        self.leave_half()
        self.plans.create('plan', **SMALL, resume=True)
        assert set(self.cloud.objects()) == {'a.yaml', 'plan-environment.yaml'}

    def test_who_was_taken_over_does_not_finish_nor_undo(self):
        def overtake(request):
            if request.url.endswith('plan-environment.yaml'):
                self.cloud.swift.before = lambda request: None
                create = self.cloud.service().create
                create('plan', fakes.content(), resume=True)

        self.cloud.swift.before = overtake
        error = self.assertRaises(errors.Exists, self.create)
        assert 'resumed the creation' in str(error)
        self.plans.load('plan')

    def test_of_two_who_resume_at_once_one_is_told(self):
        self.leave_half()
        told = []

        def overtake(method, name):
            # Both have found the same half plan by now.
            if method == 'create' and name == LOCK:
                self.cloud.registry.before = lambda method, name: None
                self.cloud.service().create('plan', **SMALL, resume=True)
                told.append(self.plans.load('plan').environment.template)

        self.cloud.registry.before = overtake
        error = self.assertRaises(errors.Exists, self.create, resume=True)
        assert 'Another caller' in str(error)
        assert told == ['a.yaml']
        assert self.plans.load('plan').environment.template == 'a.yaml'

    def test_a_plan_is_a_copy_of_another_container(self):
        store = self.cloud.swift.store()
        store.put_container('theirs', {})
        for path, data in fakes.content().items():
            store.put_object('theirs', path, data)
        core = plan_operations.PlanOperations(self.plans)
        core.create('plan', 'theirs')
        assert set(self.cloud.objects()) == set(fakes.content())
        self.assertRaises(errors.NotFound, self.plans.load, 'theirs')
        self.assertRaises(errors.NotFound, core.create, 'other', 'nope')


BAD = b'heat_template_version: 2021-04-16\nresources:\n  a: [b\n  c: d\n'
GOOD = b'heat_template_version: 2021-04-16\n'
LARGE = 'environments/large.yaml'

EXAMPLE = pathlib.Path(__file__).parents[3] / 'contrib/examples/plan'


@pytest.fixture
def cloud():
    return fakes.Cloud()


def create(cloud, files):
    return cloud.plans.create('shop', fakes.content(**files))


def test_a_plan_has_no_file_that_heat_cannot_read(cloud):
    said = (
        'nodes/node.yaml is not YAML at line 4, column 4: while parsing a '
        "flow sequence, did not find expected ',' or ']'"
    )
    with pytest.raises(errors.Invalid) as caught:
        create(cloud, {'nodes/node.yaml': BAD})
    assert str(caught.value) == said
    with pytest.raises(errors.NotFound):
        cloud.plans.load('shop')
    # What nothing refers to may be anything.
    registry = b'resource_registry: {"A::B::C": ../nodes/bad.yaml}\n'
    create(cloud, {LARGE: registry, 'nodes/bad.yaml': BAD})
    with pytest.raises(errors.Invalid, match=r'nodes/bad\.yaml is not YAML'):
        cloud.plans.select('shop', {LARGE: True})
    plan = cloud.plans.load('shop')
    assert plan.environment.enabled == ('base.yaml',)
    with pytest.raises(errors.Invalid, match=r'nodes/node\.yaml is not YAML'):
        cloud.plans.update('shop', {'nodes/node.yaml': BAD})
    # It was put there past us.
    cloud.write_past_checks('nodes/node.yaml', BAD, 'shop')
    cloud.plans.update('shop', {'nodes/node.yaml': GOOD})
    cloud.plans.resolve(cloud.plans.load('shop'))


def test_what_is_enabled_has_a_limit(cloud, monkeypatch):
    monkeypatch.setattr(references, 'LARGEST', 1000)
    with pytest.raises(errors.Invalid, match='exceed 1000 characters'):
        create(cloud, {'scripts/run.sh': b'x' * 1000})


def test_jinja_templates_are_named_where_they_are_not_rendered(cloud):
    for lost in 'root.yaml', 'plan-environment.yaml':
        with pytest.raises(errors.Invalid, match='render them with --render'):
            create(cloud, {lost: None, 'root.j2.yaml': b''})


def test_the_example_is_complete_and_its_choices_are_choices(cloud):
    def select(**choices):
        choices = {f'environments/{k}.yaml': v for k, v in choices.items()}
        enabled = cloud.plans.select('shop', choices).environment.enabled
        return [pathlib.Path(path).stem for path in enabled]

    plan = cloud.plans.create('shop', sources.from_directory(EXAMPLE))
    found = cloud.plans.resolve(plan)
    assert {'tiers/web.yaml', 'scripts/greet.sh'} <= found.files.keys()
    assert found.warnings == cloud.plans.capabilities(plan).warnings == ()
    assert list(plan.environment.passwords) == ['WebPassword']
    [role] = cloud.plans.roles(plan)
    assert (role.name, role.count) == ('Web', 1)
    with pytest.raises(errors.Invalid):
        select(french=True)
    assert select(polite=True) == ['base', 'english', 'polite']
    chosen = select(french=True, english=False, polite=False)
    assert chosen == ['base', 'french']
