# SPDX-License-Identifier: Apache-2.0
"""The pages in Horizon, in a real browser.

They need Debian's chromium, and playwright, which drives it; without them
each test says what it skips.
"""

import base64
import contextlib
import pathlib
import re
import zipfile

import pytest

from heat_plugins import errors
from tests.functional import base
from tests.functional import conftest
from tests.functional import running

sync_api = pytest.importorskip('playwright.sync_api')

CHROMIUM = pathlib.Path('/usr/bin/chromium')

pytestmark = [
    pytest.mark.browser,
    pytest.mark.long,
    pytest.mark.xdist_group('horizon'),
    pytest.mark.skipif(
        not CHROMIUM.exists(), reason="Debian's package chromium is missing"
    ),
    pytest.mark.skipif(
        conftest.PROFILE != 'small', reason='Horizon is for the profile small'
    ),
]

#: What Heat lets a reader do where its new defaults hold.
POLICY = """\
"software_deployments:create": "role:member"
"stacks:update": "role:member"
"""

#: Prints more than an answer holds, and what no page should obey.
HOSTILE = """\
#!/bin/sh
awk 'BEGIN {$1 = ""}'
head -c 900000 /dev/zero | tr '\\0' x
echo '<script>document.title = "owned"</script>'
echo '<img src="x" onerror="document.title = 1">'
echo '{$ constructor.constructor("document.title = 2")() $}'
printf 'left \\342\\200\\256 right \\033[31m red\\n'
"""

#: How the last of these is shown.
ESCAPED = r'left \u202e right \x1b[31m red'


@pytest.fixture(scope='module')
def horizon(request, tmp_path_factory):
    """A cloud with Horizon, and a user who only reads."""
    policy = tmp_path_factory.mktemp('policy') / 'policy.yaml'
    policy.write_text(POLICY)
    conf = f'[oslo_policy]\npolicy_file = {policy}\n'
    yield from conftest.clouds(request, 'horizon', conf, extras=['dashboard'])


@pytest.fixture(scope='module')
def journal(tmp_path_factory):
    return running.Journal(tmp_path_factory.mktemp('journal'), 'shop')


@pytest.fixture(scope='module')
def shop(horizon, journal):
    """Three databases with agents, and a schedule."""
    template = running.fleet(3)
    inputs = template['resources']['config']['properties']['inputs']
    for each in inputs:
        each['default'] = journal.inputs.get(each['name'], each['default'])
    inputs.append({'name': 'db_password', 'default': 'none'})
    template['resources']['nightly'] = {
        'type': 'OS::Heat::SoftwareSchedule',
        'properties': {
            'cron': '30 2 * * *',
            'timezone': 'Europe/Berlin',
            'action': 'BACKUP',
            'targets': [{'get_resource': 'db1'}],
        },
    }
    stack = base.Stack(horizon.session(), template, name='shop')
    with running.switched_on(
        horizon, [stack], running.of_fleet(3), supervised=True
    ):
        stack.wait('CREATE_COMPLETE')
        yield stack


@pytest.fixture(scope='module')
def chromium():
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=str(CHROMIUM), args=['--no-sandbox']
        )
        yield browser
        browser.close()


#: What stands on the field, link or button that has the focus.
FOCUSED = """() => {
    const e = document.activeElement;
    const labels = [...e.labels || []].map(label => label.innerText);
    return e === document.body ? '' : [e.innerText, e.value, ...labels].join();
}"""


class Browser:
    """A user's browser.

    :ivar page: its page.
    """

    def __init__(self, cloud, chromium):
        self._env = cloud.env()
        services = cloud.status()['services']
        (self.url,) = (
            each['url'] for each in services if each['name'] == 'dashboard'
        )
        self.context = chromium.new_context(
            viewport={'width': 1280, 'height': 900}
        )
        self.page = self.context.new_page()
        self.page.set_default_timeout(30_000)
        self.dialogs = []
        self.page.on('dialog', lambda dialog: self.dialogs.append(str(dialog)))

    def open(self, path):
        answer = self.page.goto(f'{self.url}{path}')
        # What is drawn with Horizon's scripts is there.
        self.page.wait_for_load_state('networkidle')
        return answer

    def log_in(self, name='demo', password=''):
        self.open('/auth/login/')
        self.page.fill('#id_username', name)
        self.page.fill('#id_password', password or self._env['OS_PASSWORD'])
        self.page.keyboard.press('Enter')
        self.page.wait_for_url(re.compile('/project/'))
        return self

    def tab_to(self, text):
        """Press Tab until the field or button with a text has the focus."""
        for _press in range(80):
            if text in self.page.evaluate(FOCUSED):
                return
            self.page.keyboard.press('Tab')
        raise AssertionError(f'no press of Tab leads to {text}')

    def follow(self, text):
        """Press Enter on a link or button, and wait for the next page."""
        self.tab_to(text)
        with self.page.expect_navigation(wait_until='networkidle'):
            self.page.keyboard.press('Enter')

    def start(self, action='BACKUP', **fields):
        """Start a run on the shop; return the path of its page."""
        self.open('/project/runs/start/form?stack=shop')
        self.page.select_option('#id_action', label=action)
        self.page.click('summary')
        for name, value in fields.items():
            field = self.page.locator(f'#id_{name}')
            field.check() if value == 'yes' else field.fill(value)
        self.page.click('text=Preview')
        self.page.click('text=/Start on . target/')
        self.page.wait_for_url(re.compile('/project/runs/[0-9a-f-]{36}/'))
        return str(self.page.url).removeprefix(self.url)

    def ask(self, label):
        """Press a button of a run's row; a red one is confirmed."""
        row = self.page.locator('#runs tbody tr').first
        button = row.get_by_text(label).first
        for _try in range(10):
            if not button.is_visible():
                row.locator('.dropdown-toggle').click()
            # An update that was on its way closes the menu once more.
            with contextlib.suppress(sync_api.TimeoutError):
                button.click(timeout=2000)
                break
        if label in ('Cancel Run', 'Delete Run'):
            self.page.locator(
                '.modal-footer .btn-primary, .modal-footer .btn-danger'
            ).click()

    def await_state(self, state):
        """Wait until the row of a run says so, without a reload."""
        self.page.wait_for_selector(
            f'#runs tbody tr td:text-is("{state}")', timeout=90_000
        )


@pytest.fixture
def user(horizon, chromium):
    browser = Browser(horizon, chromium).log_in()
    yield browser
    browser.context.close()


@pytest.fixture
def gate(journal):
    """What servers wait for; closed before the test and open after it."""
    journal.gate.unlink(missing_ok=True)
    yield journal.gate
    journal.gate.touch()


def test_from_login_to_a_finished_backup_by_keyboard(
    horizon, shop, chromium, gate
):
    browser = Browser(horizon, chromium)
    keys = browser.page.keyboard
    browser.open('/auth/login/')
    browser.tab_to('User Name')
    keys.type('demo')
    browser.tab_to('Password')
    keys.type(horizon.env()['OS_PASSWORD'])
    keys.press('Enter')
    browser.page.wait_for_url(re.compile('/project/'))
    browser.follow('Runs')
    browser.follow('Start Run')
    browser.tab_to('shop')
    keys.press('Space')
    browser.follow('Next')
    browser.follow('Preview')
    browser.follow('Start on 3 targets')
    browser.await_state('running')
    gate.touch()
    browser.await_state('complete')
    browser.follow('server2')
    browser.page.wait_for_selector('pre:text("backed up db2")')
    browser.context.close()


def test_canary_is_approved_and_the_rest_cancelled(user, shop, gate):
    gate.touch()
    user.start(canary='1', approve_after_canary='yes', max_concurrent='1')
    user.await_state('waiting-for-approval')
    gate.unlink()
    user.ask('Approve Run')
    user.await_state('running')
    user.ask('Cancel Run')
    user.await_state('cancelled')
    requests = user.page.locator('h4:text("Requests") + ul')
    user.page.reload()
    assert 'cancel by demo' in requests.inner_text()
    gate.touch()
    user.ask('Retry Run')
    user.await_state('complete')
    user.ask('Delete Run')
    user.page.wait_for_url(re.compile('/project/runs/$'))


def test_what_changed_after_the_preview_is_previewed_again(
    user, horizon, shop
):
    before = len([*running.client(horizon).list()])
    user.open('/project/runs/start/form?stack=shop')
    user.page.click('text=Preview')
    user.page.click('summary')
    user.page.fill('#id_resources', 'db1*')
    user.page.click('text=Start on 3 targets')
    user.page.wait_for_selector('text=nothing was started')
    assert user.page.is_visible('text=Start on 1 target')
    # Unchanged, it is previewed again all the same.
    with user.page.expect_navigation(wait_until='networkidle'):
        user.page.click('button:text("Preview")')
    assert user.page.is_visible('text=Start on 1 target')
    assert not user.page.get_by_text('nothing was started').count()
    user.page.fill('#id_max_concurrent', 'lots')
    with user.page.expect_navigation(wait_until='networkidle'):
        user.page.click('button:text("Preview")')
    wrong = user.page.locator('.has-error')
    assert 'At a time, at most' in wrong.inner_text()
    assert len([*running.client(horizon).list()]) == before


def test_log_has_no_inputs_and_a_page_that_is_out_of_date_says_so(
    user, horizon, shop, gate
):
    gate.touch()
    user.open('/project/runs/start/form?stack=shop')
    user.page.get_by_label('db_password').fill('correct horse')
    user.page.click('text=Preview')
    user.page.click('text=/Start on . target/')
    user.await_state('complete')
    log = (horizon.path / 'logs/dashboard.log').read_text()
    assert '"run_id"' in log
    assert 'correct horse' not in log
    run_id = user.page.url.split('/')[-2]
    user.open('/project/runs/')
    running.client(horizon).delete(run_id)
    user.ask('Delete Run')
    user.page.wait_for_selector(f'text=Heat has no run {run_id}')


def test_rows_wait_for_a_heat_that_does_not_answer(user, horizon, shop, gate):
    path = user.start()
    assert user.open(f'{path}?first={"9" * 5000}').ok
    user.open(f'{path}0/cancel')
    assert user.page.is_visible('h1:text("Cancel Target")')
    user.open(path)
    horizon.stop('heat')
    try:
        user.await_state('unknown')
        user.page.locator('#targets').get_by_text(
            'Cannot reach'
        ).first.wait_for()
    finally:
        horizon.start('heat')
    gate.touch()
    user.await_state('complete')


def test_schedule_is_paused_with_a_note_and_runs_are_drawn(user, shop, gate):
    gate.touch()
    user.start()
    user.await_state('complete')
    user.open('/project/schedules/shop/nightly/')
    assert '02:30 CE' in user.page.inner_text('h4:text("Next times") + ul')
    assert user.page.locator('object[type="image/svg+xml"]').count() == 1
    user.page.click('#schedules .dropdown-toggle')
    user.page.click('text=Pause Schedule')
    user.page.fill('#id_note', 'until the release')
    user.page.click('.modal-footer >> text=Pause')
    row = user.page.locator('#schedules tbody tr')
    row.get_by_text('until the release').wait_for()
    row.locator('.dropdown-toggle').click()
    row.get_by_text('Resume Schedule').click()
    user.page.wait_for_selector('text=Resumed')
    assert not row.get_by_text('until the release').count()
    user.open(f'/project/stacks/stack/{shop.id}/')
    user.page.click('text=Timeline')
    drawn = user.page.wait_for_selector('object[type="image/svg+xml"]')
    data = drawn.get_attribute('data').partition('base64,')[2]
    assert b'db1 BACKUP' in base64.b64decode(data)


@pytest.fixture
def reader(horizon, chromium):
    """A user whose role in the project of demo is that of a reader."""
    with base.in_demo(horizon, 'reader', 'reader'):
        password = horizon.env('reader')['OS_PASSWORD']
        browser = Browser(horizon, chromium).log_in('reader', password)
        browser.open(f'/auth/switch/{horizon.session().project_id}/')
        yield browser
        browser.context.close()


def test_reader_is_offered_nothing_and_refused_as_is_a_form_without_token(
    reader, user, horizon, shop, gate
):
    path, page = user.start(), reader.page
    reader.open(path)
    assert page.locator('#runs tbody tr').count() == 1
    for offered in ('Pause Run', 'Cancel Run', 'Cancel Target', 'Start Run'):
        assert not page.get_by_text(offered).count()
    assert reader.open('/project/runs/start').status == 403
    assert reader.open('/project/runs/start/form?stack=shop').status == 403
    assert reader.open('/project/schedules/shop/nightly/pause').status == 403
    assert reader.open(f'{path}cancel').status == 403
    reader.open('/project/schedules/')
    assert not page.get_by_text('Run Now').count()
    # What Horizon does not send, a program may.
    run_id = path.split('/')[-2]
    cookies = {
        each['name']: each['value'] for each in reader.context.cookies()
    }
    sent = reader.context.request.post(
        f'{reader.url}{path}',
        form={
            'csrfmiddlewaretoken': cookies['csrftoken'],
            'action': f'runs__pause__{run_id}',
        },
        headers={'Referer': f'{reader.url}{path}'},
    )
    alerts = re.findall(r'class="alert[^"]*"(.*?)</div>', sent.text(), re.S)
    assert 'not allowed to pause' in ''.join(alerts)
    # Nor does one act who has the user's cookies, and no token.
    sent = user.context.request.post(
        f'{user.url}{path}',
        form={'action': f'runs__pause__{run_id}'},
        max_redirects=0,
    )
    # Horizon's own answer is its page for that.
    assert sent.status in (302, 403)
    assert running.client(horizon).show(run_id).state == 'running'


def test_hostile_output_of_a_script_harms_nothing(user, shop, tmp_path):
    user.start('a script of my own', script=HOSTILE)
    user.await_state('complete')
    with user.page.expect_download() as download:
        user.page.click('text=Download all')
    file = tmp_path / 'outputs.zip'
    download.value.save_as(file)
    with zipfile.ZipFile(file) as archive:
        assert max(each.file_size for each in archive.infolist()) > 900_000
    user.page.click('#targets tbody tr a')
    user.page.wait_for_load_state('networkidle')
    assert user.page.title().startswith('shop server')
    assert user.page.locator('pre').first.inner_text().endswith(ESCAPED)
    assert user.page.locator('pre img, pre script').count() == 0
    assert not user.dialogs


def test_cloud_without_heat_plugins_says_so(user, horizon):
    # The last one: the stacks' types are then Heat's.
    horizon.up(plugin='none', extras=['dashboard'])
    for path in ('/project/runs/', '/project/schedules/'):
        assert user.open(path).ok
        user.page.wait_for_selector('text=heat-engine takes no orders of runs')
    with pytest.raises(errors.ServiceError):
        running.client(horizon).door()
