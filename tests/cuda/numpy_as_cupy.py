"""A stand-in for CuPy over NumPy, for tests without a GPU: device memory is host memory.

In: nothing. Out: `install()` puts modules named `cupy` and `cupyx.scipy.special` in place. It is
as strict as CuPy where that matters: its arrays do not become NumPy arrays by themselves, do not
mix with them, and results are arrays, never scalars. Where the real CuPy is installed, a function
or an argument that it does not have is an error. cuBLAS's products are computed from addresses.
"""

from __future__ import annotations

import ctypes
import importlib
import inspect
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import scipy.linalg
import scipy.special

_OPERATORS = (
    "add sub mul truediv floordiv mod pow and or xor lshift rshift lt le gt ge eq ne radd rsub "
    "rmul rtruediv rfloordiv rmod rpow rand ror rxor iadd isub imul itruediv ifloordiv imod ipow "
    "iand ior ixor neg pos abs invert matmul getitem"
).split()
_FLAGS = ("c_contiguous", "f_contiguous", "owndata", "forc", "fnc")
# What CuPy's ufuncs have of NumPy's methods, seen on CuPy 14.2. Its classes have them for all.
_METHODS = {
    "accumulate": {"add", "multiply"}, "reduceat": {"add"}, "outer": set(),
    "at": {"add", "subtract", "maximum", "minimum", "bitwise_and", "bitwise_or", "bitwise_xor"},
}
_TAKES_ARRAYS = {"a", "arr", "condition", "m"}  # first parameters that may not be plain numbers
launches: list[str] = []  # names of the cuBLAS routines called


def _real_cupy():
    try:
        return importlib.import_module("cupy")
    except ImportError:
        return None


REAL = _real_cupy()


class _Flags(SimpleNamespace):
    def __init__(self, values):
        super().__init__(**values)

    def __getitem__(self, name):
        return getattr(self, name.lower())


class UnownedMemory:
    def __init__(self, ptr, size, owner, device_id=-1):
        self.ptr, self.size, self.owner = ptr, size, owner


class MemoryPointer:
    def __init__(self, mem, offset):
        self.mem, self.ptr = mem, mem.ptr + offset

    def __add__(self, offset):
        return MemoryPointer(self.mem, self.ptr - self.mem.ptr + int(offset))


class ndarray:
    """An array of the device."""

    def __init__(self, shape, dtype=float, memptr=None, strides=None, order="C"):
        if memptr is None:
            self._a = np.empty(shape, dtype, order=order)
            return
        kind, sizes = np.dtype(dtype), tuple(shape)
        steps = strides or np.empty(sizes, np.uint8).strides
        reach = kind.itemsize
        if strides is None:
            reach = kind.itemsize * int(np.prod(sizes, dtype=int))
        elif all(sizes):
            reach += sum((n - 1) * s for n, s in zip(sizes, steps))
        if memptr.ptr + reach > memptr.mem.ptr + memptr.mem.size and all(sizes):
            raise ValueError("the array reaches past its memory")
        held = (ctypes.c_uint8 * max(reach, 1)).from_address(memptr.ptr)
        held.keeps = memptr
        self._a = np.ndarray(sizes, kind, held, 0, strides)

    @property
    def data(self):
        address = self._a.__array_interface__["data"][0]
        low, high = np.lib.array_utils.byte_bounds(self._a)
        return MemoryPointer(UnownedMemory(address, high - low, self), 0)

    @property
    def device(self):
        return Device(0)

    @property
    def base(self):
        return None if self._a.base is None else wrapped(np.asarray(self._a.base))

    def get(self, stream=None, order="C", out=None, blocking=True):
        return self._a.copy(order=order)

    def set(self, arr, stream=None):
        fits = isinstance(arr, np.ndarray) and arr.dtype == self._a.dtype
        if not fits or not arr.flags.c_contiguous:
            raise TypeError("set takes a contiguous NumPy array of the same dtype")
        self._a[...] = arr.reshape(self._a.shape)

    def __setitem__(self, key, value):
        self._a[plain(key)] = plain(value)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        if REAL is not None and not hasattr(REAL.ndarray, name):
            raise AttributeError(f"CuPy's arrays have no {name!r}")
        found = getattr(self._a, name)
        if name == "flags":
            return _Flags({n: getattr(found, n) for n in _FLAGS})
        if callable(found):
            return lambda *a, **k: wrapped(found(*plain(a), **plain(_known(name, k))))
        return wrapped(found) if isinstance(found, np.ndarray) else found

    def __array__(self, *args, **kwargs):
        raise TypeError("Implicit conversion to a NumPy array is not allowed.")

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        return wrapped(getattr(ufunc, method)(*plain(inputs), **plain(kwargs)))

    def __array_function__(self, function, kinds, args, kwargs):
        return wrapped(function(*plain(args), **plain(kwargs)))

    def __len__(self):
        return len(self._a)

    def __iter__(self):
        return (wrapped(x) for x in self._a)

    def __bool__(self):
        return bool(self._a)

    def __float__(self):
        return float(self._a)

    def __int__(self):
        return int(self._a)

    __index__ = __int__
    __hash__ = None


def _known(name, named):
    """Return the keyword arguments of an array's method, all of which CuPy's must take."""
    if "initial" in named or "where" in named:
        raise TypeError(f"{name}() got an unexpected keyword argument")
    return named


def _operator(name):
    def run(self, *others):
        others = plain(others)
        found = getattr(self._a, name)(*others)
        if name.startswith("__i") and name not in ("__invert__",):
            return self
        return found if found is NotImplemented else wrapped(found)

    return run


for _name in _OPERATORS:
    setattr(ndarray, f"__{_name}__", _operator(f"__{_name}__"))
ndarray.__module__ = "cupy"


def wrapped(x):
    """NumPy's results as the device's."""
    if isinstance(x, np.ndarray | np.generic):
        made = object.__new__(ndarray)
        made._a = np.asarray(x)
        return made
    if isinstance(x, tuple | list):
        return type(x)(*map(wrapped, x)) if hasattr(x, "_fields") else type(x)(map(wrapped, x))
    return x


def plain(x):
    """The device's arrays as NumPy's; NumPy arrays among them are an error, as in CuPy."""
    if isinstance(x, ndarray):
        return x._a
    if isinstance(x, np.ndarray):
        raise TypeError("Unsupported type <class 'numpy.ndarray'>")
    if isinstance(x, tuple | list) and not hasattr(x, "_fields"):
        return type(x)(map(plain, x))
    return {k: plain(v) for k, v in x.items()} if isinstance(x, dict) else x


# -- modules -------------------------------------------------------------------------------------


class _Mirror(ModuleType):
    """NumPy's functions under CuPy's name; what the real CuPy lacks is missing here too."""

    def __init__(self, name, source, real=None):
        super().__init__(name)
        self._source, self._real = source, real

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        if self._real is not None and not hasattr(self._real, name):
            raise AttributeError(f"module 'cupy' has no attribute {name!r}")
        found = getattr(self._source, name)
        real = getattr(self._real, name, None)
        if isinstance(found, ModuleType):
            found = _Mirror(name, found, real)
        elif callable(found) and not isinstance(found, type):
            found = _Function(found, real)
        setattr(self, name, found)
        return found


class _Function:
    """A function of NumPy on the device's arrays; its arguments must be ones CuPy's takes."""

    def __init__(self, function, real=None):
        self._function, self._real = function, real
        self._signature = _signature(real)

    def __call__(self, *args, **kwargs):
        if self._signature is not None:
            self._signature.bind(*args, **kwargs)
            first = next(iter(self._signature.parameters), None)
            if first in _TAKES_ARRAYS and args and isinstance(args[0], int | float | np.generic):
                raise TypeError(f"CuPy's {self._function.__name__} takes no plain number")
        return wrapped(self._function(*plain(args), **plain(kwargs)))

    def __getattr__(self, name):
        if self._real is not None and not hasattr(self._real, name):
            raise AttributeError(f"CuPy's {self._function.__name__} has no {name!r}")
        if name in _METHODS and self._function.__name__ not in _METHODS[name]:
            raise NotImplementedError(f"cupy_{self._function.__name__}.{name} is not supported")
        return _Function(getattr(self._function, name))


def _signature(function):
    try:
        return inspect.signature(function) if callable(function) else None
    except (TypeError, ValueError):
        return None  # written in Cython, without one


class CUDARuntimeError(RuntimeError):
    pass


class Device:
    compute_capability = "90"

    def __init__(self, number=0):
        self.id = number

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        pass


def _gemm(dtype, name):
    item = np.dtype(dtype).itemsize

    def matrix(address, rows, columns, leading):
        if not rows or not columns:
            return np.zeros((rows, columns), dtype)
        held = (ctypes.c_uint8 * (((columns - 1) * leading + rows) * item)).from_address(address)
        return np.ndarray((rows, columns), dtype, held, 0, (item, leading * item))

    def number(address):
        return np.frombuffer((ctypes.c_uint8 * item).from_address(address), dtype)[0]

    def gemm(handle, transa, transb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc):
        launches.append(name)
        assert lda >= max(1, k if transa else m) and ldb >= max(1, n if transb else k)
        assert ldc >= max(1, m) and handle == 17 and number(beta) == 0
        left = matrix(a, *((k, m) if transa else (m, k)), lda)
        right = matrix(b, *((n, k) if transb else (k, n)), ldb)
        left, right = left.T if transa else left, right.T if transb else right
        matrix(c, m, n, ldc)[...] = number(alpha) * (left @ right)

    def stacked(handle, ta, tb, m, n, k, alpha, a, lda, sa, b, ldb, sb, beta, c, ldc, sc, count):
        for i in range(count):
            at = (a + i * sa * item, lda, b + i * sb * item, ldb)
            gemm(handle, ta, tb, m, n, k, alpha, *at, beta, c + i * sc * item, ldc)

    return gemm, stacked


def install():
    """Put the stand-in where `import cupy` finds it."""
    cupy = _Mirror("cupy", np, REAL)
    cupy.ndarray, cupy.cuda = ndarray, ModuleType("cupy.cuda")

    def array(x, dtype=None, copy=True, order="K"):
        """NumPy arrays go up to the device here, on purpose."""
        given = x if isinstance(x, np.ndarray) else plain(x)
        moved = not isinstance(x, ndarray)
        return wrapped(np.array(given, dtype, copy=copy or moved or None, order=order))

    cupy.array = array
    cupy.asarray = lambda x, dtype=None, order="K": array(x, dtype, False, order)
    cupy.ascontiguousarray = lambda x, dtype=None: array(x, dtype, False, "C")
    cuda = cupy.cuda
    cuda.Device, cuda.UnownedMemory, cuda.MemoryPointer = Device, UnownedMemory, MemoryPointer
    cuda.runtime = SimpleNamespace(
        getDeviceCount=lambda: 1, getDevice=lambda: 0, setDevice=lambda n: None,
        deviceSynchronize=lambda: None, CUDARuntimeError=CUDARuntimeError,
        getDeviceProperties=lambda n: {"name": b"stand-in"},
    )
    cuda.device = SimpleNamespace(get_cublas_handle=lambda: 17)
    cuda.cublas = SimpleNamespace()
    for letter, dtype in (("s", "float32"), ("d", "float64")):
        one, many = _gemm(dtype, letter + "gemm")
        setattr(cuda.cublas, letter + "gemm", one)
        setattr(cuda.cublas, letter + "gemmStridedBatched", many)
    cupy.asnumpy = lambda x: np.array(plain(x))
    special = _Mirror("cupyx.scipy.special", scipy.special)
    linalg = _Mirror("cupyx.scipy.linalg", scipy.linalg)
    sys.modules.update({
        "cupy": cupy, "cupy.cuda": cuda, "cupyx": ModuleType("cupyx"),
        "cupyx.scipy": ModuleType("cupyx.scipy"), "cupyx.scipy.special": special,
        "cupyx.scipy.linalg": linalg,
    })
    return cupy
