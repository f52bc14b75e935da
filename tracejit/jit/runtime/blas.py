"""Addresses of BLAS routines, and the switch that keeps BLAS to one thread during our calls.

In: nothing. Out: addresses of sgemm and dgemm (Fortran convention), and a block of words. Through
the words the native runner sets BLAS's own thread count to 1 and back. Called by `executable`.

NumPy's own OpenBLAS is taken where NumPy's wheel has one. It is loaded already (0.2 ms), eager mode
uses the same code, and no second pool of BLAS threads is made. Else SciPy's `cython_blas` is loaded
as a single extension module (28 ms instead of 150 ms for `scipy.linalg`).
"""

from __future__ import annotations

import ctypes
import functools
import glob
import importlib.machinery
import importlib.util
import os
from typing import Any, NamedTuple

import numpy as np

from tracejit import logs
from tracejit.core.memory import forks

_ROUTINES = ("sgemm", "dgemm")


class Blas(NamedTuple):
    """Addresses of BLAS functions, 0 where the library has none, and the library's name.

    Integers may be passed in 64-bit cells.
    """

    sgemm: int
    dgemm: int
    get_threads: int
    set_threads: int
    library: str

    def gemm(self, dtype: str) -> int:
        return self.sgemm if dtype == "float32" else self.dgemm


@functools.cache
def blas() -> Blas:
    """Return the BLAS of this process.

    Raises ImportError, saying what to install, where neither NumPy nor SciPy has one.
    """
    found = _of_numpy() or _of_scipy()
    logs.emit("kernels", f"BLAS: {found.library}")
    return found


def _of_numpy() -> Blas | None:
    folder = os.path.join(os.path.dirname(np.__file__), os.pardir, "numpy.libs")
    for path in glob.glob(os.path.join(folder, "*openblas*")):
        library = ctypes.CDLL(path)
        for suffix in ("_64_", "64_", "_", ""):
            sgemm, dgemm = (_symbol(library, f"scipy_{name}{suffix}") for name in _ROUTINES)
            if sgemm and dgemm:
                return Blas(sgemm, dgemm, *_thread_switch(library), os.path.basename(path))
    return None


def _symbol(library: Any, name: str) -> int:
    function = getattr(library, name, None)
    return 0 if function is None else ctypes.cast(function, ctypes.c_void_p).value or 0


def _thread_switch(library: Any) -> tuple[int, int]:
    for prefix in ("scipy_openblas", "openblas"):
        for suffix in ("64_", "", "_64_"):
            names = (f"{prefix}_get_num_threads{suffix}", f"{prefix}_set_num_threads{suffix}")
            get, set_ = (_symbol(library, name) for name in names)
            if get and set_:
                return get, set_
    return 0, 0


def _of_scipy() -> Blas:
    spec = importlib.util.find_spec("scipy")
    if spec is None or not spec.submodule_search_locations:
        raise ImportError("matrix products need BLAS: pip install scipy")
    folder = spec.submodule_search_locations[0]
    suffixes = importlib.machinery.EXTENSION_SUFFIXES
    paths = [os.path.join(folder, "linalg", "cython_blas" + suffix) for suffix in suffixes]
    path = next(p for p in paths if os.path.exists(p))
    name = "scipy.linalg.cython_blas"
    loader = importlib.machinery.ExtensionFileLoader(name, path)
    module = importlib.util.module_from_spec(
        importlib.util.spec_from_file_location(name, path, loader=loader)  # type: ignore[arg-type]
    )
    loader.exec_module(module)
    sgemm, dgemm = (_capsule(module.__pyx_capi__[routine]) for routine in _ROUTINES)
    bundled = glob.glob(os.path.join(folder, os.pardir, "scipy.libs", "*openblas*"))
    switch = _thread_switch(ctypes.CDLL(bundled[0])) if bundled else (0, 0)
    return Blas(sgemm, dgemm, *switch, path)


def _capsule(capsule: Any) -> int:
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype = ctypes.c_char_p
    api.PyCapsule_GetName.argtypes = [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    return int(api.PyCapsule_GetPointer(capsule, api.PyCapsule_GetName(capsule)))


@functools.cache
def guard() -> np.ndarray:
    """Return the words for the runner: lock, calls in progress, threads before, address of get, of
    set."""
    found = blas()
    return np.array([0, 0, 0, found.get_threads, found.set_threads, 0, 0, 0], np.int64)


def _no_calls() -> bool:
    """Return True if no thread is inside BLAS, whose locks a forked child could never release."""
    return not guard.cache_info().currsize or not guard()[1]


forks.wait_until(_no_calls)


@forks.in_child
def _forget_calls() -> None:
    """Note in a forked child that no BLAS call is in progress, and restore the number of
    threads."""
    if guard.cache_info().currsize:
        words = guard()
        if words[1] and words[4]:
            ctypes.CFUNCTYPE(None, ctypes.c_int64)(int(words[4]))(int(words[2]))
        words[:3] = 0

