"""Kernel caches in a file: whole, or refused where changed or for another place; nothing is run."""

import hashlib
import io
import json
import os
import zipfile

import pytest

import tracejit as tj
from tracejit import config
from tracejit.commands import cache_archive
from tracejit.commands.cache_archive import TransferError, export_cache, import_cache
from tracejit.jit import compiled_function
from tracejit.jit.lowering.target import missing_features
from tracejit.jit.runtime import cache, cache_folder, cache_upkeep, loader


def program(x):
    return (x * 1.375 + 0.625).exp().sum()


def run():
    """Run the program as a new process would; return the numbers of kernels by their origin."""
    cache._addresses.clear()
    compiled_function._segments.clear()
    before = dict(cache.counts)
    found = tj.script(program, mode="compiled")(tj.ones(5))
    assert tj.allclose(found, program(tj.ones(5)))
    return {name: cache.counts[name] - before[name] for name in ("compiled", "loaded")}


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    monkeypatch.setattr(cache, "_addresses", {})
    for name in ("_warned", "_unusable", "_read_only", "_trusted"):
        monkeypatch.setattr(cache_folder, name, set())


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """The bytes of an archive."""
    folder = tmp_path_factory.mktemp("made")
    with config.override(cache_dir=folder / "cache"):
        kept = dict(cache._addresses)
        assert run()["compiled"] > 0
        done = export_cache(folder / "kernels.zip")
        cache._addresses.update(kept)
    data = (folder / "kernels.zip").read_bytes()
    assert done.digest == hashlib.sha256(data).hexdigest() and done.nbytes == len(data)
    return data


@pytest.fixture
def archive(tmp_path, exported):
    path = tmp_path / "kernels.zip"
    path.write_bytes(exported)
    return path


@pytest.fixture
def empty(tmp_path):
    with config.override(cache_dir=tmp_path / "other"):
        yield tmp_path / "other"


def files(folder):
    return sorted(path for path in folder.rglob("*") if not path.is_dir())


def rewritten(archive, change):
    """Write the archive again with a changed manifest and changed files."""
    with zipfile.ZipFile(archive) as found:
        entries = {name: found.read(name) for name in found.namelist()}
    manifest = json.loads(entries.pop("manifest.json"))
    change(manifest, entries)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("manifest.json", json.dumps(manifest))
        for name, data in entries.items():
            made.writestr(name, data)
    archive.write_bytes(buffer.getvalue())
    return archive


def test_kernels_of_the_archive_are_found_and_none_is_compiled(archive, empty):
    done = import_cache(archive)
    assert done.kernels == sum(pack.kernels for pack in cache_upkeep.entries())
    assert run() == {"compiled": 0, "loaded": done.kernels}
    assert empty.stat().st_mode & 0o777 == 0o700
    assert import_cache(archive) == done, "again"


def test_equal_caches_give_equal_archives(archive, exported, empty, tmp_path):
    import_cache(archive)
    export_cache(tmp_path / "again.zip")
    assert (tmp_path / "again.zip").read_bytes() == exported


def test_an_import_runs_nothing(archive, empty, monkeypatch):
    def never(*args):
        raise AssertionError("code was loaded")

    monkeypatch.setattr(loader, "load", never)
    assert import_cache(archive).packs > 0


def test_a_changed_byte_is_found(archive, exported, empty):
    """Bytes of the zip format that carry no content may change; the packs never do."""
    refused = 0
    for at in range(0, len(exported), max(1, len(exported) // 150)):
        archive.write_bytes(exported[:at] + bytes([exported[at] ^ 0x41]) + exported[at + 1 :])
        try:
            import_cache(archive)
        except TransferError as error:
            assert str(archive) in str(error)
            refused += 1
            assert not files(empty)
        else:
            assert run()["compiled"] == 0
            cache_upkeep.prune()
    assert refused > 100


@pytest.mark.parametrize("data", [b"", b"PK", b"no zip at all" * 99])
def test_what_is_no_archive(archive, empty, data):
    archive.write_bytes(data)
    with pytest.raises(TransferError, match="is no archive of a kernel cache"):
        import_cache(archive)
    assert not empty.exists()


def test_half_an_archive(archive, exported, empty):
    archive.write_bytes(exported[: len(exported) // 2])
    with pytest.raises(TransferError):
        import_cache(archive)


@pytest.mark.parametrize(("part", "other"), [
    ("tracejit", "9.9"), ("llvmlite", "0.1"), ("numba", "0.1"), ("numpy", "1.0"),
    ("machine", "riscv64-unknown-linux-gnu"), ("processor", "other-cpu"),
])
def test_other_versions_are_refused_by_name(archive, empty, part, other):
    rewritten(archive, lambda manifest, entries: manifest.update({part: other}))
    with pytest.raises(TransferError, match=f"it was made for {part} {other}, and here is"):
        import_cache(archive)
    assert not files(empty)


def test_another_build_and_another_format_are_refused(archive, empty):
    rewritten(archive, lambda manifest, entries: manifest.update(key="0" * 16))
    with pytest.raises(TransferError, match="another build of the same tracejit version"):
        import_cache(archive)
    rewritten(archive, lambda manifest, entries: manifest.update(format="2"))
    with pytest.raises(TransferError, match="its format is '2'"):
        import_cache(archive)


@pytest.mark.skipif(bool(missing_features("x86-64-v2")), reason="no x86-64")
def test_another_target_is_refused_by_name(archive, empty, tmp_path):
    wanted = "target native, and this process uses x86-64-v2 .TRACEJIT_TARGET."
    with config.override(target="x86-64-v2"), pytest.raises(TransferError, match=wanted):
        import_cache(archive)
    with config.override(target="x86-64-v2"):
        assert run()["compiled"] > 0
        export_cache(tmp_path / "v2.zip")
    with pytest.raises(TransferError, match="target x86-64-v2, and this process uses native"):
        import_cache(tmp_path / "v2.zip")
    with config.override(target="x86-64-v2", cache_dir=tmp_path / "third"):
        import_cache(tmp_path / "v2.zip")
        assert run()["compiled"] == 0


def _rename(manifest, entries, new):
    row = manifest["packs"][0]
    entries[new] = entries.pop(row["name"])
    row["name"] = new


def _grow(manifest, entries):
    name = manifest["packs"][0]["name"]
    entries[name] = entries[name] + bytes(1 << 20)


def _other_code(manifest, entries):
    row = manifest["packs"][0]
    data = entries[row["name"]] = entries[row["name"]][:-1] + b"!"
    row["sha256"] = hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize(("change", "message"), [
    (lambda m, e: e.update({"run.py": b"print(1)"}), "not those of its manifest"),
    (lambda m, e: e.pop(m["packs"][0]["name"]), "not those of its manifest"),
    (lambda m, e: _rename(m, e, "../evil.pack"), "no name of a pack"),
    (lambda m, e: _rename(m, e, "/etc/passwd"), "no name of a pack"),
    (lambda m, e: _rename(m, e, f"native-{'0' * 16}/{'0' * 32}.pack"), "no name of a pack"),
    (lambda m, e: m["packs"][0].update(bytes=-1), "a size that no pack has"),
    (lambda m, e: m["packs"][0].update(bytes="1"), "a size that no pack has"),
    (_grow, "larger than it should be"),
    (lambda m, e: m["packs"][0].update(sha256="0" * 64), "its checksum differs"),
    (_other_code, "is damaged: its checksum differs"),
    (lambda m, e: m.update(packs={}), "its manifest has another shape"),
    (lambda m, e: m.update(packs=[3]), "no archive of a kernel cache"),
    (lambda m, e: m["packs"].append(m["packs"][0]), "its manifest has another shape"),
])
def test_a_forged_archive(archive, empty, change, message):
    rewritten(archive, change)
    with pytest.raises(TransferError, match=message):
        import_cache(archive)
    assert not files(empty)


def test_a_file_that_others_can_write_needs_its_digest(archive, exported, empty):
    archive.chmod(0o666)
    with pytest.raises(TransferError, match="not trusted .others can write it.*--sha256"):
        import_cache(archive)
    digest = hashlib.sha256(exported).hexdigest()
    with pytest.raises(TransferError, match="its SHA-256 is"):
        import_cache(archive, "0" * 64)
    assert not empty.exists()
    assert import_cache(archive, digest.upper()).packs > 0


def test_a_link_is_no_archive(archive, empty, tmp_path):
    link = tmp_path / "link.zip"
    link.symlink_to(archive)
    with pytest.raises(TransferError, match="it is a symbolic link"):
        import_cache(link)


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="needs root")
def test_root_does_not_trust_the_file_of_a_user(archive, empty):
    os.chown(archive, 12345, 12345)
    with pytest.raises(TransferError, match="belongs to user 12345, and this process runs as 0"):
        import_cache(archive)


def test_for_all_users(archive, empty):
    import_cache(archive, for_all=True)
    assert empty.stat().st_mode & 0o777 == 0o755
    for path in empty.rglob("*"):
        if not path.is_symlink():
            assert path.stat().st_mode & 0o777 == (0o755 if path.is_dir() else 0o644), path


def test_for_all_users_in_a_folder_that_others_write(archive, empty):
    empty.mkdir(mode=0o777)
    empty.chmod(0o777)
    with pytest.raises(TransferError, match="others can write .*chmod go-w"):
        import_cache(archive, for_all=True)


def test_nothing_to_export(empty, tmp_path):
    with pytest.raises(TransferError, match="has no kernels of tracejit .* for target native"):
        export_cache(tmp_path / "x.zip")
    assert not (tmp_path / "x.zip").exists()


def test_a_damaged_pack_is_not_exported(archive, empty, tmp_path):
    import_cache(archive)
    pack = cache_upkeep.entries()[0].path
    pack.write_bytes(pack.read_bytes()[:-1])
    with pytest.raises(TransferError, match="is damaged .its checksum differs.*cache prune"):
        export_cache(tmp_path / "x.zip")


def test_the_manifest_says_what_is_in_it(archive):
    with zipfile.ZipFile(archive) as found:
        manifest = json.loads(found.read("manifest.json"))
    assert {**cache_archive.description(), "packs": manifest["packs"]} == manifest
    assert {row["function"].rpartition(".")[2] for row in manifest["packs"]} <= {"program", ""}
