"""Compiled kernels that cannot be kept: what is said of the folder and of its files."""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import tempfile

from tests.errors.control_flow import data
from tests.errors.entries import said
from tracejit import config
from tracejit.jit import compiled_function
from tracejit.jit.runtime import cache, cache_folder, packs


def compiled(jit, folder, scale):
    """Compile a kernel, which no folder has yet, and ask for its file."""
    with config.override(mode="compiled", cache_dir=folder):
        f = jit(lambda x: x * scale + 1)
        f(data())
        return f.report().kernels[0].file


@said(
    "tracejit cannot use <folder>/cache (it is no directory): what is missing is compiled in each "
    "process. Set TRACEJIT_CACHE_DIR, or see `python -m tracejit doctor`",
)
def folder_is_a_file(jit):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "cache"
        path.write_text("a file")
        compiled(jit, path, 2.0)


@said(
    "<folder>/cache/kernels/mul_add_....py is damaged (its checksum differs); it is written again",
)
def text_is_damaged(jit):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "cache"
        file = pathlib.Path(compiled(jit, path, 4.0))
        file.write_text("another text")
        compiled(jit, path, 4.0)


@said(
    "<folder>/cache/kernels/mul_add_....py is damaged (it is no file); it is written again",
    "tracejit cannot write <folder>/cache/kernels/mul_add_....py (Is a directory)",
)
def text_is_a_folder(jit):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "cache"
        file = pathlib.Path(compiled(jit, path, 4.0))
        file.unlink()
        file.mkdir()
        compiled(jit, path, 4.0)


@said("<folder>/cache/kernels/mul_add_....py is damaged (others can write it); it is written again")
def others_can_write_the_text(jit):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "cache"
        pathlib.Path(compiled(jit, path, 4.0)).chmod(0o666)
        compiled(jit, path, 4.0)


# -- files with machine code -----------------------------------------------------------------------


def loaded_after(jit, change):
    """Compile a kernel, change its file, and call the function in a process that forgot it."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "cache"
        compiled(jit, path, 8.0)
        known, cache._addresses = cache._addresses, {}
        compiled_function._segments.clear()
        try:
            compiled(jit, path, 8.0)  # writes what other kernels of the process lack there
            (pack,) = [p for p in path.glob("native-*/*.pack") if b"mul_add" in p.read_bytes()]
            digests, _ = packs.read_pack(pack)
            for digest in digests:
                del cache._addresses[cache._known(digest)]
            change(pack)
            compiled_function._segments.clear()
            compiled(jit, path, 8.0)
        finally:
            cache._addresses = known


def with_header(change):
    """Make a change of a pack's header, whose checksum is right again after it."""

    def rewrite(pack):
        line, _, body = pack.read_bytes()[len(packs.MAGIC) + 65 :].partition(b"\n")
        payload = change(line) + b"\n" + body
        check = hashlib.sha256(payload).hexdigest().encode()
        pack.write_bytes(packs.MAGIC + check + b"\n" + payload)

    return rewrite


def entry_of(key, value):
    """Replace an entry of a pack's header."""
    return with_header(lambda line: json.dumps(json.loads(line) | {key: value}).encode())


@said("<folder>/cache/native-.../....pack is damaged (it was written for another folder); "
      "compiling again")  # fmt: skip
def pack_of_another_machine(jit):
    loaded_after(jit, entry_of("for", "native-0"))


@said("<folder>/cache/native-.../....pack is damaged (its header does not fit its content); "
      "compiling again")  # fmt: skip
def pack_that_is_shorter(jit):
    loaded_after(jit, entry_of("sizes", [7]))


@said("<folder>/cache/native-.../....pack is damaged (its header has another shape); "
      "compiling again")  # fmt: skip
def pack_with_another_header(jit):
    loaded_after(jit, entry_of("digests", "none"))


@said("<folder>/cache/native-.../....pack is damaged (its header is no header); compiling again")
def pack_without_a_header(jit):
    loaded_after(jit, with_header(lambda line: b"[]"))


@said("<folder>/cache/native-.../....pack is damaged (it has 1073741825 bytes); compiling again")
def pack_that_is_too_large(jit):
    loaded_after(jit, lambda pack: os.truncate(pack, cache_folder.MOST_BYTES + 1))


@said("<folder>/cache/native-.../....pack is damaged (it is a symbolic link); compiling again")
def pack_that_is_a_link(jit):
    def link(pack):
        pack.rename(pack.with_name("other"))
        pack.symlink_to("other")

    loaded_after(jit, link)
