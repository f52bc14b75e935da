"""Compiled kernels that cannot be kept: what is said of the folder and of its files."""

from __future__ import annotations

import pathlib
import tempfile

from tests.errors.control_flow import data
from tests.errors.entries import said
from tracejit import config


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
