"""Every scalar, random and conversion function compiles to PTX; no GPU is needed."""

import importlib.util
import re

import numpy as np
import pytest

from tracejit.jit.lowering.half import CONVERSIONS, kernel_conversion
from tracejit.jit.lowering.philox import RANDOM_FUNCTIONS, kernel_random_function
from tracejit.jit.lowering.vector_math import FUNCTIONS, kernel_function

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("numba_cuda") is None, reason="needs the extra 'cuda'"
)


def ptx_of(function, dtypes, results):
    from numba import cuda, types

    arguments = ", ".join(f"p{i}" for i in range(len(dtypes)))
    elements = ", ".join(f"p{i}[i]" for i in range(len(dtypes)))
    text = (
        f"def kernel({arguments}, out, n):\n    i = cuda.grid(1)\n    if i < n:\n"
        f"        out[i] = function({elements})\n"
    )
    space = {"cuda": cuda, "function": function}
    exec(text, space)
    pointers = [types.CPointer(getattr(types, d)) for d in [*dtypes, results]]
    signature = types.void(*pointers, types.int64)
    return cuda.compile(space["kernel"], signature, cc=(9, 0))[0]


@pytest.mark.parametrize(("name", "dtype"), sorted(FUNCTIONS))
def test_scalar_functions(name, dtype):
    count = FUNCTIONS[name, dtype].__code__.co_argcount
    ptx = ptx_of(kernel_function(name, dtype, "cuda"), [dtype] * count, dtype)
    called = set(re.findall(r"^\s*call\S*\s+(?:\([^)]*\),\s*)?(\w+)", ptx, re.M))
    assert called <= {f"tracejit_{name}_far_{dtype}"}, "a call that nothing here answers"
    assert all(re.search(rf"\.func[^;{{]*{far}\([^;{{]*\)\s*{{", ptx) for far in called)
    plain = ptx_of(kernel_function(name, dtype, "cuda", False), [dtype] * count, dtype)
    assert "fma" not in plain


@pytest.mark.parametrize("name", sorted(set(RANDOM_FUNCTIONS) - {"philox_words"}))
def test_random_functions_keep_every_rounding(name):
    dtypes = RANDOM_FUNCTIONS[name][1]
    result = {"randint": "int64", "bernoulli": "uint8"}.get(name, "float64")
    ptx = ptx_of(kernel_random_function(name, "cuda"), dtypes, result)
    assert "fma" not in ptx
    if name.startswith("normal"):
        kind = name[-2:]
        products = re.findall(rf"(mul|add|sub|div|sqrt)(\.\w+)?\.f{kind}", ptx)
        assert len(products) > 20
        assert {rounding for _, rounding in products} == {".rn"}


@pytest.mark.parametrize("name", CONVERSIONS)
def test_half_conversions(name):
    _, dtypes = CONVERSIONS[name]
    result = np.uint16 if dtypes == ("float32",) else np.float32
    assert ptx_of(kernel_conversion(name, "cuda"), dtypes, np.dtype(result).name)
