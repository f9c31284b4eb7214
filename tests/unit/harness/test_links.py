# SPDX-License-Identifier: Apache-2.0
import pytest

from tests import links


@pytest.fixture
def folder(tmp_path):
    (tmp_path / 'other.html').write_text('<h1 id="there">Other</h1>')
    (tmp_path / 'file.svg').write_text('<svg/>')
    return tmp_path


def check(folder, body):
    (folder / 'index.html').write_text(f'<p id="here">{body}</p>')
    return links.main(folder)


@pytest.mark.parametrize(
    'link',
    [
        'other.html',
        'other.html#there',
        '#here',
        'file.svg',
        'https://elsewhere.example/none',
        'mailto:none@example.org',
    ],
)
def test_a_link_that_leads_somewhere(folder, link):
    assert check(folder, f'<a href="{link}">x</a>') == 0


@pytest.mark.parametrize(
    'link', ['none.html', 'other.html#none', '#none', 'none.svg']
)
def test_a_link_that_leads_nowhere(folder, capsys, link):
    assert check(folder, f'<a href="{link}">x</a>') == 1
    assert f'index.html: {link} leads nowhere' in capsys.readouterr().err


def test_a_picture_that_is_not_there(folder):
    assert check(folder, '<img src="none.svg">') == 1
