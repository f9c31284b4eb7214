# SPDX-License-Identifier: Apache-2.0
"""Draw the pictures of the page on Horizon: ``make dashboard-pictures``."""

import subprocess

from playwright import sync_api

from tests.functional import base
from tests.functional import test_dashboard

PICTURES = base.ROOT / 'doc/source/pictures'
DEMO = base.ROOT / 'contrib/demo/run-dashboard'


def draw(browser: test_dashboard.Browser) -> None:
    """Run something, and take the pictures."""
    page = browser.log_in().page
    path = browser.start(input1='1')
    browser.await_state('complete')
    browser.start(
        input1='20', canary='1', approve_after_canary='yes', max_concurrent='1'
    )
    browser.await_state('waiting-for-approval')
    browser.start(input1='60', resources='stock')
    page.wait_for_selector('#targets td:text-is("running")')
    browser.open('/project/runs/')
    page.screenshot(path=PICTURES / 'dashboard-runs.png')
    browser.open('/project/schedules/shop/nightly/')
    page.click('#schedules >> text=Run Now')
    page.wait_for_selector('text=Started')
    browser.open('/project/schedules/shop/nightly/')
    page.screenshot(path=PICTURES / 'dashboard-schedule.png', full_page=True)
    browser.open(path)


def main() -> None:
    subprocess.run([DEMO], check=True)
    try:
        with sync_api.sync_playwright() as playwright:
            chromium = playwright.chromium.launch(
                executable_path=str(test_dashboard.CHROMIUM),
                args=['--no-sandbox'],
            )
            cloud = base.Cloud('demo-dashboard')
            draw(test_dashboard.Browser(cloud, chromium))
            chromium.close()
    finally:
        subprocess.run([DEMO, '--stop'], check=True)


if __name__ == '__main__':
    main()
