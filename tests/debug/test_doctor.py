"""The doctor: every question is answered, and what is wrong is called so."""

import sys

import pytest

from tracejit import config
from tracejit.commands import findings
from tracejit.debug import doctor
from tracejit.jit.lowering import target
from tracejit.jit.runtime import cache, cache_folder

STATES = {"ok", "absent", "broken"}


def by_subject():
    return {finding.subject: finding for finding in doctor.examine()}


def test_every_question_is_answered_under_its_name():
    found = by_subject()
    assert list(found) == list(doctor.QUESTIONS)
    assert {finding.state for finding in found.values()} <= STATES
    # What the suite itself needs; the BLAS and the GPU depend on the machine.
    for subject in ("tracejit", "packages", "processor", "threads", "kernels"):
        assert found[subject].state == "ok", found[subject]


def test_an_unusable_cache_is_broken_and_says_what_to_set(tmp_path):
    taken = tmp_path / "a-file"
    taken.write_text("no directory")
    with config.override(cache_dir=taken), pytest.warns(cache.CacheWarning):
        cache_folder._warned.clear()
        found = by_subject()["cache"]
    assert found.state == "broken" and "TRACEJIT_CACHE_DIR" in found.fix


def test_a_damaged_pack_is_broken(tmp_path):
    with config.override(cache_dir=tmp_path / "fresh"):
        directory = cache.native_directory()
        (directory / "x.pack").write_bytes(b"not a pack")
        found = by_subject()["cache"]
    assert found.state == "broken" and "prune" in found.fix


def test_missing_packages_are_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy", None)
    version = findings.version_of
    found = by_subject()["packages"]
    assert found.state == "broken" and found.fix == "pip install --force-reinstall scipy"
    monkeypatch.setattr(findings, "version_of",
                        lambda name: "" if name == "scipy" else version(name))
    found = by_subject()["packages"]
    assert found.state == "broken" and found.fix == "pip install scipy"


def test_a_target_that_cannot_run_is_broken(monkeypatch):
    monkeypatch.setitem(target.BASELINES, "x86-64-v3", ("nosuch",))
    with config.override(target="x86-64-v3"):
        found = by_subject()["processor"]
    assert found.state == "broken" and "lacks nosuch" in found.fix


@pytest.mark.parametrize("machine, lacks, runs", [
    ("x86_64", None, "native, x86-64-v2, x86-64-v3, x86-64-v4"),
    ("x86_64", "avx512f", "native, x86-64-v2, x86-64-v3"),
    ("x86_64", "avx2", "native, x86-64-v2"),
    ("aarch64", None, "native"),
])
def test_the_processor_line_names_the_targets_that_run_here(monkeypatch, machine, lacks, runs):
    features = {feature for level in target.BASELINES.values() for feature in level} - {lacks}
    monkeypatch.setattr(target, "host_cpu", lambda: (
        "some", ",".join(f"+{feature}" for feature in sorted(features))))
    monkeypatch.setattr(target.platform, "machine", lambda: machine)
    assert f"; runs {runs}; target native" in by_subject()["processor"].text


def test_a_target_that_is_said_to_run_does():
    text = by_subject()["processor"].text
    said = text.partition("; runs ")[2].partition(";")[0].split(", ")
    for one in ("native", *target.BASELINES):
        if one in said:
            target.processor(one)
        else:
            with pytest.raises(target.TargetError):
                target.processor(one)


def test_cupy_that_cannot_be_imported_is_broken(monkeypatch):
    find = doctor.importlib.util.find_spec
    monkeypatch.setattr(doctor.importlib.util, "find_spec", lambda name: find("json"))
    monkeypatch.setitem(sys.modules, "cupy", None)
    found = by_subject()["cuda"]
    assert found.state == "broken" and "cupy" in found.text


def test_without_cupy_it_says_what_to_install(monkeypatch):
    find = doctor.importlib.util.find_spec
    monkeypatch.setattr(doctor.importlib.util, "find_spec",
                        lambda name: None if name == "cupy" else find(name))
    found = by_subject()["cuda"]
    assert found.state == "absent" and "tracejit[cuda]" in found.fix


def test_a_question_that_raises_is_a_broken_line(monkeypatch):
    def ask():
        raise OSError("no such thing\nand more")

    monkeypatch.setitem(doctor.QUESTIONS, "threads", ask)
    found = by_subject()["threads"]
    assert found == findings.Finding("threads", "broken", "OSError: no such thing")


def test_the_table_lines_up():
    rows = [findings.Finding("a", "ok", "fine"),
            findings.Finding("long", "absent", "no", "get it")]
    lines = findings.table(rows).splitlines()
    assert lines == ["a     ok      fine", "long  absent  no", "              -> get it"]
