"""Whatever is in the cache's folder, results are right and nothing outside it changes."""

import os

import pytest

from tests.runtime import cache_corruptions as corruptions
from tracejit import config
from tracejit.jit.runtime import cache_upkeep

NAMES = [f"{suffix} {corrupt.__name__}" for suffix, corrupt in corruptions.KINDS]
# An intact file, or none, is no reason for a warning; some replacements leave it usable.
SILENT = {"unreadable", "gone", "folder", "link", "pipe", "owner", "noise", "directory", "swapped"}


def every(name, count, seed):
    suffix, corrupt = corruptions.KINDS[NAMES.index(name)]
    seen = corruptions.run_kind(suffix, corrupt, count, seed)
    assert sum(seen.values()) == count
    if corrupt.__name__ not in SILENT:
        assert seen[0] == 0, "the loader did not notice"


@pytest.mark.parametrize("name", NAMES)
def test_a_few_corruptions(name):
    every(name, 8, 1)


@pytest.mark.parametrize("target", ["x" * 300, "loop", "nothing", "file/inside"])
def test_links_that_lead_nowhere_are_removed(target, tmp_path, monkeypatch):
    monkeypatch.setattr(config.flags, "cache_dir", str(tmp_path))
    folder = tmp_path / "native-0"
    folder.mkdir(mode=0o700)
    link = folder / f"{'0' * 31}2"
    link.symlink_to(link.name if target == "loop" else target)
    (tmp_path / "native-1").symlink_to("y" * 300)
    cache_upkeep.prune()
    assert not os.path.lexists(link) and os.path.lexists(tmp_path / "native-1")


@pytest.mark.full
@pytest.mark.parametrize("name", NAMES)
def test_many_corruptions(name):
    every(name, 1500, 2)  # more than 10,000 of packs, of sources, and of links


def test_a_fresh_process_after_a_corruption():
    corruptions.run_processes(1, 3)


@pytest.mark.full
def test_fresh_processes_after_corruptions():
    corruptions.run_processes(40, 4)
