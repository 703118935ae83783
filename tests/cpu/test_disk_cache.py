"""The cache on disk: entries come back or count as missing, whoever else writes and deletes."""

import os
import subprocess
import sys
import time

import pytest

from haloc.cpu import disk_cache
from haloc.cpu.disk_cache import DiskCache, default_folder
from haloc.flags import Flags

KEYS = [f"{k:064x}" for k in range(1, 1000)]


@pytest.fixture
def cache(tmp_path):
    return DiskCache(tmp_path / "cache", 1 << 20)


def test_entries_come_back(cache):
    assert cache.read("unit", KEYS[0]) is None
    cache.write("unit", KEYS[0], b"code")
    cache.write("program", KEYS[0], b"")
    assert cache.read("unit", KEYS[0]) == b"code"
    assert cache.read("program", KEYS[0]) == b""
    assert {(e.kind, e.key) for e in cache.entries()} == {("unit", KEYS[0]), ("program", KEYS[0])}


def test_damaged_entries_are_missing_and_written_anew(cache):
    cache.write("unit", KEYS[0], b"code" * 100)
    (entry,) = cache.entries()
    whole = entry.path.read_bytes()
    for wrong in (b"", whole[:10], whole[:-1], whole + b"x", b"x" + whole[1:], whole[:-1] + b"x"):
        entry.path.write_bytes(wrong)
        assert cache.read("unit", KEYS[0]) is None
    cache.write("unit", KEYS[0], b"code" * 100)
    assert cache.read("unit", KEYS[0]) == b"code" * 100


def test_the_least_recently_used_go_first(cache):
    now = time.time()
    for k in range(10):
        cache.write("unit", KEYS[k], bytes(10_000))
    for entry in cache.entries():
        age = KEYS.index(entry.key)
        os.utime(entry.path, (now - 10_000 * age, now - 10_000 * age))
    cache.read("unit", KEYS[9])  # the oldest is used, and so is young
    cache.collect(50_000)
    left = {KEYS.index(e.key) for e in cache.entries()}
    assert left == {0, 1, 2, 9}


def test_it_stays_within_its_limit(tmp_path):
    cache = DiskCache(tmp_path, 100_000)
    for k in range(100):
        cache.write("unit", KEYS[k], bytes(5_000))
    assert sum(e.size_bytes for e in cache.entries()) < 120_000
    cache.write("unit", KEYS[200], bytes(50_000))
    assert cache.read("unit", KEYS[200]) is None, "no entry may push out all others"


def test_a_full_or_read_only_disk_is_no_error(tmp_path):
    file = tmp_path / "file"
    file.write_text("no folder")
    cache = DiskCache(file, 1 << 20)
    cache.write("unit", KEYS[0], b"code")
    assert cache.read("unit", KEYS[0]) is None
    assert list(cache.entries()) == []


def test_where_it_is(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_folder() == tmp_path / "haloc"
    assert DiskCache.of(Flags(cache_bytes=0)) is None
    cache = DiskCache.of(Flags(cache_dir=str(tmp_path / "own"), cache_bytes=7))
    assert cache is not None
    assert (cache.folder, cache.limit_bytes) == (tmp_path / "own", 7)
    assert (tmp_path / "own").stat().st_mode & 0o777 == 0o700


def test_a_folder_that_others_can_write_to_is_not_used(tmp_path):
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    with pytest.warns(UserWarning, match="others than this user can write to it"):
        assert DiskCache.of(Flags(cache_dir=str(tmp_path / "open"))) is None
    with pytest.warns(UserWarning, match=r"HALOC_CACHE_DIR=/dev/null/x: .*; not used"):
        assert DiskCache.of(Flags(cache_dir="/dev/null/x")) is None


WRITER = """
import sys
from pathlib import Path
from haloc.cpu.disk_cache import DiskCache
cache = DiskCache(Path(sys.argv[1]), 200_000)
bad = 0
for turn in range(30):
    for k in range(20):
        key = f"{k:064x}"
        found = cache.read("unit", key)
        bad += found not in (None, bytes([k]) * 5000)
        cache.write("unit", key, bytes([k]) * 5000)
    cache.collect(40_000)
print(bad)
"""


def test_several_processes_share_a_folder(tmp_path):
    """All write, read and delete the same entries: each finds the right one or none."""
    command = [sys.executable, "-c", WRITER, str(tmp_path)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    assert [p.communicate()[0].strip() for p in running] == ["0"] * 4
    assert not list(tmp_path.rglob(".*")), "temporary files are left"


def test_reading_keeps_an_entry_young(cache, monkeypatch):
    cache.write("unit", KEYS[0], b"code")
    (entry,) = cache.entries()
    os.utime(entry.path, (0, 0))
    assert cache.read("unit", KEYS[0]) == b"code"
    assert time.time() - entry.path.stat().st_mtime < 60
    monkeypatch.setattr(disk_cache.os, "utime", lambda path: pytest.fail("written every time"))
    assert cache.read("unit", KEYS[0]) == b"code"
