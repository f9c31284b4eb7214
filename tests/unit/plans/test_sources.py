# SPDX-License-Identifier: Apache-2.0
"""Content comes from directories, tarballs, git and containers, safely."""

import bz2
import gzip
import io
import lzma
import os
import pathlib
import subprocess
import tarfile

import fixtures
import pytest
import testtools

from heat_plugins import errors
from heat_plugins import pools
from heat_plugins.content import sources
from heat_plugins.content import storage
from heat_plugins.content import tarballs
from tests.unit import fake_swift

FILES = {'root.yaml': b'{}', 'nodes/node.yaml': b'[1]', 'empty': b''}
SMALL = sources.SourceLimits(files=3, file_bytes=4, bytes=8)


class DirectoryTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.root = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.plan = self.root / 'plan'
        for path, content in FILES.items():
            file = self.plan / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)

    def refused(self, said, **more):
        with pytest.raises(errors.Invalid) as caught:
            sources.from_directory(self.plan, **more)
        assert said in str(caught.value)

    def test_a_link_within_is_followed_and_no_other(self):
        # What version control keeps is left out.
        for path in ('.git/config', 'nodes/.git'):
            (self.plan / path).parent.mkdir(exist_ok=True)
            (self.plan / path).write_text('secret')
        assert sources.from_directory(self.plan) == FILES
        link = self.plan / 'link'
        link.symlink_to('nodes/node.yaml')
        assert sources.from_directory(self.plan)['link'] == b'[1]'
        (self.root / 'secret').write_text('secret')
        for target, said in (
            ('../secret', 'a file outside'),
            ('/etc', 'a file outside'),
            ('nodes', 'not an ordinary file'),
            ('nope', 'nope'),
        ):
            link.unlink()
            link.symlink_to(target)
            self.refused(said)

    def test_other_entries_are_refused(self):
        pipe = self.plan / 'pipe'
        os.mkfifo(pipe)
        self.refused('pipe is not an ordinary')
        pipe.unlink()
        for path, said in (
            ('a\nb', 'not a path within the plan'),
            ('.heat-plugins/x', '.heat-plugins'),
        ):
            file = self.plan / path
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(b'')
            self.refused(said)
            file.unlink()
        self.plan /= 'nope'
        self.refused('not a directory')

    def test_there_is_an_end_to_its_size(self):
        assert sources.from_directory(self.plan, SMALL) == FILES
        (self.plan / 'more').write_bytes(b'')
        self.refused('more than 3 files', limits=SMALL)


def tarball(*members, **files):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode='w') as tar:
        for path, content in files.items():
            member = tarfile.TarInfo(path)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
        for member in members:
            tar.addfile(member)
    file.seek(0)
    return file


def special(name, kind, target=''):
    member = tarfile.TarInfo(name)
    member.type = kind
    member.linkname = target
    return member


class TarballTest(testtools.TestCase):
    def refused(self, file, *words, limits=None):
        error = self.assertRaises(errors.Invalid, tarballs.read, file, limits)
        for word in words:
            assert word in str(error)

    def test_it_may_be_compressed_and_have_one_folder_at_its_top(self):
        for top in ('', 'plan-1.0/', './'):
            plain = tarball(**{f'{top}{path}': FILES[path] for path in FILES})
            plain = plain.getvalue()
            for pack in (bytes, gzip.compress, bz2.compress, lzma.compress):
                packed = io.BytesIO(pack(plain))
                assert tarballs.read(packed) == FILES

    def test_links_to_files_in_it_are_followed(self):
        file = tarball(
            special('nodes/soft', tarfile.SYMTYPE, '../root.yaml'),
            special('hard', tarfile.LNKTYPE, 'root.yaml'),
            special('chain', tarfile.SYMTYPE, 'nodes/soft'),
            **FILES,
        )
        found = tarballs.read(file)
        for name in ('nodes/soft', 'hard', 'chain'):
            assert found[name] == b'{}'

    def test_what_is_no_file_in_it_is_refused(self):
        for path in ('../x', '/etc/passwd', 'a/../../x', '..'):
            self.refused(tarball(**{path: b''}), 'not a path within the plan')
        for target in ('/etc/passwd', '../../etc/passwd', 'nope', 'nodes'):
            for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE):
                file = tarball(special('link', kind, target), **FILES)
                self.refused(file, 'link')
        circle = (special(a, tarfile.SYMTYPE, b) for a, b in ('ab', 'ba'))
        self.refused(tarball(*circle, **FILES), 'not a file')
        sparse = tarfile.GNUTYPE_SPARSE
        for kind in (tarfile.FIFOTYPE, tarfile.CHRTYPE, sparse):
            self.refused(tarball(special('x', kind), **FILES), 'x', 'ordinary')

    def test_there_is_an_end_to_its_size(self):
        assert tarballs.read(tarball(**FILES), SMALL) == FILES
        for more, word in (
            ({'more': b''}, 'more than 3 files'),
            ({'empty': b'12345'}, 'empty is larger than 4 bytes'),
            ({'empty': b'1234'}, '8 bytes'),
        ):
            self.refused(tarball(**{**FILES, **more}), word, limits=SMALL)

    def with_header(self, records, *files, kind=tarfile.XHDTYPE):
        """Return a tarball of an extended header, and of other tarballs."""
        header = special('x', kind)
        header.size = len(records)
        records += bytes(-len(records) % tarfile.BLOCKSIZE)
        rest = b''.join(file.getvalue() for file in files)
        return io.BytesIO(header.tobuf() + records + rest)

    def test_headers_have_a_limit(self):
        # Older Pythons search one of digits at each of them.
        self.refused(self.with_header(b'1' * 10**7), '--format=gnu')
        header = special('x', tarfile.XHDTYPE).tobuf()
        file = io.BytesIO(header * 40000)
        self.refused(file, '--format=gnu', limits=SMALL)
        file = tarball(a=b'1')
        for n in range(99):
            record = b'8 a%02d=x\n' % n
            file = self.with_header(record, file, kind=tarfile.XGLTYPE)
            if n == 3:
                assert tarballs.read(file) == {'a': b'1'}
        self.refused(file, 'headers')
        # What inflates without end is cut off.
        header = special('x', tarfile.XHDTYPE)
        header.size = 1 << 30
        packed = gzip.compress(bytes(64 * 1024 * 1024), 1)
        bomb = gzip.compress(header.tobuf()) + packed
        self.refused(io.BytesIO(bomb), 'too large', limits=SMALL)

    def test_what_is_no_tarball_is_refused(self):
        plain = tarball(**FILES).getvalue()
        whole = gzip.compress(plain)
        negative = special('x', tarfile.REGTYPE)
        negative.size = -4 * tarfile.BLOCKSIZE
        second = 2 * tarfile.BLOCKSIZE
        for data in (
            b'',
            b'hello',
            whole[:-20],
            plain[: second + 9],
            plain[:second] + b'x' + plain[second + 1 :],
            negative.tobuf(tarfile.GNU_FORMAT) + plain,
            b'\x1f\x8bxx',
            b'BZhxx',
            self.with_header(b'0 path=y\n').getvalue(),
        ):
            self.refused(io.BytesIO(data), 'Cannot read the tarball')


class GitTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.root = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.git('init', '--quiet')
        self.commit('one')

    def git(self, *arguments):
        identity = ('-c', 'user.name=x', '-c', 'user.email=x@example.com')
        subprocess.run(
            ['git', '-C', self.root, *identity, *arguments],
            check=True,
            capture_output=True,
        )

    def commit(self, content):
        (self.root / 'plan').mkdir(exist_ok=True)
        (self.root / 'plan' / 'root.yaml').write_text(content)
        self.git('add', '.')
        self.git('commit', '--quiet', '-m', content)

    def test_what_is_committed_is_read_at_any_revision(self):
        self.git('tag', 'first')
        self.commit('two')
        (self.root / 'plan' / 'root.yaml').write_text('changed')
        (self.root / 'other').write_text('not tracked')
        for revision, content in ('first', b'one'), ('HEAD', b'two'):
            found = tarballs.from_git(str(self.root), revision)
            assert found == {'plan/root.yaml': content}
        for revision in ('nope', '--output=/tmp/x'):
            with pytest.raises(errors.Invalid, match=revision):
                tarballs.from_git(str(self.root), revision)

    def test_git_runs_no_programs_that_a_repository_names(self):
        marker = self.root / 'marker'
        program = f'touch {marker}; cat'
        (self.root / '.gitattributes').write_text('* filter=own ident\n')
        self.commit('filtered')
        for name, value in (
            ('filter.own.smudge', program),
            ('filter.own.process', program),
            ('filter.own.required', 'true'),
            ('core.fsmonitor', program),
            ('core.alternateRefsCommand', program),
            ('tar.tar.command', program),
            ('uploadpack.packObjectsHook', program),
        ):
            self.git('config', name, value)
        hooks = self.root / '.git' / 'hooks'
        for name in ('post-checkout', 'reference-transaction'):
            hook = hooks / name
            hook.parent.mkdir(exist_ok=True)
            hook.write_text(f'#!/bin/sh\n{program}\n')
            hook.chmod(0o755)
        marker.unlink(missing_ok=True)
        found = tarballs.from_git(str(self.root))
        assert found['plan/root.yaml'] == b'filtered'
        assert not marker.exists()

    def test_git_runs_no_programs_for_urls_and_tells_no_passwords(self):
        marker = self.root / 'marker'
        for url in (
            f'ext::sh -c touch% {marker}://x',
            f'file://{self.root}',
            'http://user:hunter2@127.0.0.1:1/x',
        ):
            error = self.assertRaises(errors.Invalid, tarballs.from_git, url)
            assert 'hunter2' not in str(error)
        assert not marker.exists()


def test_files_of_a_container_are_read_and_no_records_or_folders():
    store = fake_swift.Cluster().store()
    store.put_container('box', {})
    more = {'.heat-plugins/x': b'1', 'folder/': b''}
    for path, content in {**FILES, **more}.items():
        store.put_object('box', path, content)
    box = storage.Container(store, 'box', pools.Pool(wait=0))
    assert sources.from_container(box, SMALL) == FILES
    for limits in ({'files': 2}, {'file_bytes': 2}, {'bytes': 4}):
        with pytest.raises(errors.Invalid):
            sources.from_container(box, sources.SourceLimits(**limits))
