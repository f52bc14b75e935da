"""Variables for MPI libraries: only where they are needed, and never over the user's."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Any

import pytest

from tracejit.distributed import mpi_settings


@pytest.fixture(autouse=True)
def fresh() -> Any:
    mpi_settings.can_read_others.cache_clear()
    yield
    mpi_settings.can_read_others.cache_clear()


def _cores(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    monkeypatch.setattr(mpi_settings, "available_threads", lambda: count)


def test_more_ranks_than_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    _cores(monkeypatch, 2)
    monkeypatch.setattr(mpi_settings, "can_read_others", lambda: True)
    assert mpi_settings.settings(2) == {}
    assert mpi_settings.settings(-1) == {}
    assert mpi_settings.settings(3) == mpi_settings.CROWDED


def test_apply(monkeypatch: pytest.MonkeyPatch) -> None:
    _cores(monkeypatch, 2)
    monkeypatch.setattr(mpi_settings, "can_read_others", lambda: False)
    told = {"RANK": "0", "WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "4", "UCX_TLS": "tcp"}
    mpi_settings.apply(environ=told)
    assert told["UCX_TLS"] == "tcp"
    assert told["MPIR_CVAR_CH4_CMA_ENABLE"] == "0"
    assert told["OMPI_MCA_mpi_yield_when_idle"] == "1"
    told = {}
    mpi_settings.apply(2, told)
    assert told == mpi_settings.NO_CMA


def test_reading_the_memory_of_others(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    scope = tmp_path / "scope"
    monkeypatch.setattr(mpi_settings, "PTRACE_SCOPE", scope)
    monkeypatch.setattr(mpi_settings, "_reads_itself", lambda: True)
    assert mpi_settings.can_read_others()
    mpi_settings.can_read_others.cache_clear()
    scope.write_text("3\n")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert not mpi_settings.can_read_others()


def test_the_probe_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """The probe's answer is the system call's own."""
    libc: Any = ctypes.CDLL(None, use_errno=True)
    span = (ctypes.c_size_t * 2)(ctypes.addressof(ctypes.create_string_buffer(8)), 8)
    allowed = libc.process_vm_readv(os.getpid(), span, 1, span, 1, 0) == 8
    assert mpi_settings._reads_itself() == allowed
    monkeypatch.setattr(os, "getpid", lambda: 2**22 + 1)  # no such process
    assert not mpi_settings._reads_itself()


def test_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    _cores(monkeypatch, 2)
    monkeypatch.setattr(mpi_settings, "shared_memory", lambda: 64 << 20)
    assert mpi_settings.lines()[-1].endswith("enough for 56 ranks")
    monkeypatch.setattr(mpi_settings, "shared_memory", lambda: 10 << 20)
    assert "enough for 2 ranks: little" in mpi_settings.lines()[-1]
    monkeypatch.setattr(mpi_settings, "shared_memory", lambda: None)
    assert "no shared memory" in mpi_settings.lines()[-1]
    monkeypatch.setattr(mpi_settings, "can_read_others", lambda: False)
    assert any("no ptrace" in line for line in mpi_settings.lines())
