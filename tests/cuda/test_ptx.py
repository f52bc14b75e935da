"""Kernels compile to PTX without a GPU, and NVIDIA's assembler takes it where it is installed.

The kernels are those of the golden texts, of the programs in `programs.py`, of every row of the op
table (its first sample), each for compute capabilities 8.0 and 9.0.
"""

import hashlib
import importlib.util
import re
import warnings

import numpy as np
import pytest

import tracejit
from tests.cuda.programs import PROGRAMS
from tests.golden import test_kernels as golden
from tests.ops.test_opinfo import ROWS, call, flat, ours, samples, tensor
from tests.shares import share
from tracejit.jit.lowering import grid, ptx
from tracejit.jit.lowering.lower import lower
from tracejit.jit.lowering.native import KernelError, symbol_of
from tracejit.jit.lowering.program import Kernel
from tracejit.jit.passes.open_composites import open_composites
from tracejit.jit.runtime import placement

PROCESSORS = (80, 90)
DONE: set[tuple[str, int]] = set()  # equal texts come again and again
HAS_ASSEMBLER = importlib.util.find_spec("numba_cuda") is not None


def assembled(text, processor):
    """Machine code from PTX, by the assembler in the extra 'cuda'."""
    from cuda.bindings import nvjitlink

    handle = nvjitlink.create(1, [f"-arch=sm_{processor}"])
    try:
        data = text.encode() + b"\0"
        nvjitlink.add_data(handle, nvjitlink.InputType.PTX, data, len(data), "kernel")
        nvjitlink.complete(handle)
        code = bytearray(nvjitlink.get_linked_cubin_size(handle))
        nvjitlink.get_linked_cubin(handle, code)
    finally:
        nvjitlink.destroy(handle)
    return bytes(code)


class Collected:
    """Kernels of the programs lowered inside, by digest."""

    def __init__(self, monkeypatch):
        self.kernels = {}
        plain = placement.executable_for

        def noted(program, mode="compiled"):
            for instruction in program.instructions:
                if instruction.kernel is not None and not instruction.extern:
                    self.kernels[instruction.kernel.digest] = instruction.kernel
            return plain(program, mode)

        monkeypatch.setattr(placement, "executable_for", noted)

    def check(self, expected=True):
        assert bool(self.kernels) == expected
        for kernel in self.kernels.values():
            for processor in PROCESSORS:
                check(kernel, processor)


def check(kernel, processor):
    """PTX of one kernel: one entry, no calls, IEEE arithmetic; it assembles."""
    if (kernel.digest, processor) in DONE:
        return
    text = ptx.compile_kernel(kernel, processor)
    assert f".target sm_{processor}" in text
    assert re.findall(r"\.visible \.entry (\w+)\(", text) == [symbol_of(kernel.digest)]
    assert not re.search(r"^\s*call\b", text, re.M), "a call of a function that is not there"
    assert not re.search(r"\.(approx|ftz)", text), "arithmetic that is not IEEE's"
    if "FASTMATH = ()" in kernel.source:
        assert not re.search(r"\bfma\.", text), "a contraction that eager mode does not make"
        for rounding in re.findall(r"\b(?:mul|add|sub)(\.\w+)?\.f(?:32|64)\b", text):
            assert rounding == ".rn", "the assembler may contract this"
    if HAS_ASSEMBLER:
        assert assembled(text, processor)[:4] == b"\x7fELF"
    DONE.add((kernel.digest, processor))


@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize("numerics", ["fast", "eager"])
@pytest.mark.parametrize("example", golden.EXAMPLES, ids=lambda f: f.__name__)
def test_golden_kernels(example, numerics, processor):
    program = lower(open_composites(example()), numerics)
    kernels = [k for k in program.kernels.values() if not k.name.startswith("matmul_")]
    for kernel in kernels:
        check(kernel, processor)
    assert kernels or numerics == "eager"


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name, monkeypatch):
    found = Collected(monkeypatch)
    PROGRAMS[name]("cpu")
    found.check(expected=name != "by the library")


@pytest.mark.parametrize(("row", "numerics"), [
    pytest.param(row, numerics, id=f"{row}-{numerics}", marks=share(f"{row}-{numerics}", 2))
    for row in ROWS if row.compiled for numerics in ("fast", "eager")
])  # fmt: skip
def test_ops(row, numerics, monkeypatch):
    def function(*args, **kwargs):
        return tuple(y.clone() for y in flat(ours(row)(*args, **kwargs)))

    found = Collected(monkeypatch)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "reduction: 'mean' divides")  # kl_div's own
        warnings.filterwarnings("ignore", ".* degrees of freedom is <= 0")
        compiled = tracejit.script(function, mode="python", numerics=numerics)
        call(compiled, samples(row, row.dtypes[0])[0], tensor)
    for kernel in found.kernels.values():
        check(kernel, 90)


def test_the_assembler_is_there_where_the_extra_is():
    if not HAS_ASSEMBLER:
        pytest.skip("needs the extra 'cuda': PTX was made, and not assembled")
    broken = "// no PTX\n.version 7.8\n.target sm_90\n.visible .entry f() { nonsense; }\n"
    with pytest.raises(Exception, match="PTX"):
        assembled(broken, 90)


# -- what the text means -------------------------------------------------------------------------


def kernel_of(body, head=""):
    source = f"{head}\ndef example(buffers, operands, sizes, scratch, status, lo, hi):\n" + body
    return Kernel("example", source, hashlib.sha256(source.encode()).hexdigest()[:32], 1)


def test_contraction_is_the_kernels_own_choice():
    head = "from tracejit.jit.lowering.abi import float32_pointer\n"
    body = (
        "    x = float32_pointer(buffers, operands[0])\n"
        "    for i in range(lo, hi):\n        x[i] = x[i] * x[i] + x[i]\n"
    )
    fused = ptx.compile_kernel(kernel_of(body, head + "FASTMATH = ('contract',)\n"), 90)
    apart = ptx.compile_kernel(kernel_of(body, head), 90)
    assert "fma.rn.f32" in fused and "fma" not in apart
    assert "mul.rn.f32" in apart and "add.rn.f32" in apart


def test_random_numbers_keep_every_rounding():
    head = (
        "from numpy import uint64\nfrom tracejit.jit.lowering.abi import float32_pointer\n"
        "from tracejit.core.ops.philox_recipe import normal_float32\n"
    )
    body = (
        "    x = float32_pointer(buffers, operands[0])\n    for i in range(lo, hi):\n"
        "        x[i] = normal_float32(uint64(1), uint64(2), uint64(i))\n"
    )
    text = ptx.compile_kernel(kernel_of(body, head), 90)
    assert "fma" not in text
    found = re.findall(r"\b(?:mul|add|sub|div|sqrt)(\.\w+)?\.f32\b", text)
    assert len(found) > 20 and set(found) == {".rn"}


def test_a_text_without_a_cuda_form_is_named():
    body = "    x = complex64_pointer(buffers, operands[0])\n    x[0] = x[1]\n"
    kernel = kernel_of(body, "from tracejit.jit.lowering.abi import complex64_pointer\n")
    with pytest.raises(KernelError, match="example has no CUDA form"):
        ptx.compile_kernel(kernel, 90)


def test_processors():
    assert ptx.supported((9, 0)) == 90 and ptx.supported((8, 9)) == 89
    assert ptx.supported((10, 3)) == 100 and ptx.supported((13, 0)) == 120
    with pytest.raises(KernelError, match="6.1"):
        ptx.supported((6, 1))


def test_kernels_on_disk_are_found_again(tmp_path, monkeypatch):
    from tracejit import config
    from tracejit.jit.runtime import cache, cache_folder, cache_upkeep, cuda_kernels

    kernel = kernel_of("    status[0] = lo\n")
    with config.override(cache_dir=tmp_path / "cache"):
        first = cuda_kernels.ptx_of([kernel], 90)
        monkeypatch.setattr(ptx, "compile_kernel", None)
        assert cuda_kernels.ptx_of([kernel], 90) == first
        assert first[kernel.digest].startswith("// kind single\n")
        (pack,) = cache_upkeep.entries()
        assert pack.path.parent.name.endswith("-sm_90") and pack.kernels == 1
        with pytest.raises(TypeError):
            cuda_kernels.ptx_of([kernel], 80)
        pack.path.write_bytes(pack.path.read_bytes()[:-1])
        monkeypatch.undo()
        monkeypatch.setattr(cache_folder, "_warned", set())  # each kind is told once a process
        with pytest.warns(cache.CacheWarning, match="damaged"):
            assert cuda_kernels.ptx_of([kernel], 90) == first


# -- how the work is dealt out -------------------------------------------------------------------


def kind_of(function, *arrays):
    """How the only kernel of a captured function is dealt out."""
    found = []
    with pytest.MonkeyPatch.context() as patch:
        collected = Collected(patch)
        tracejit.script(function, mode="python")(*map(tensor, arrays))
        found = list(collected.kernels.values())
    return [grid.deal(kernel).kind for kernel in found]


X = np.ones((5, 7), np.float32)


def test_kinds():
    assert kind_of(lambda x: x * 2, X) == ["thread"]
    assert kind_of(lambda x: x.softmax(1), X) == ["row"]
    assert kind_of(lambda x: x.sum(0), X) == ["column"]
    assert kind_of(lambda x: x.sum(), X) == ["row", "row"]
    where = np.array([0, 0, 1, 2, 2])
    assert kind_of(lambda x, i: x.index_add(0, i, x), X, where) == ["single"]


def test_reductions_of_lanes_are_finished_in_their_order():
    kernel = kernel_of(
        "    x = float32_pointer(buffers, operands[0])\n"
        "    for row in range(lo, hi):\n"
        "        total = c0\n"
        "        for j in range(7):\n"
        "            total = add_float32(total, x[row * 7 + j])\n"
        "        x[row * 7] = total\n",
        "from numpy import float32\nfrom tracejit.jit.lowering.abi import float32_pointer\n"
        "from tracejit.jit.lowering.accumulate import add_float32\nc0 = float32(0)\n",
    )
    dealt = grid.deal(kernel)
    assert dealt.kind == "thread", "what is added must be one name"
    named = kernel.source.replace(
        "total = add_float32(total, x[row * 7 + j])",
        "v = x[row * 7 + j]\n            total = add_float32(total, v)",
    )
    dealt = grid.deal(Kernel("example", named, "named", 1))
    assert dealt.kind == "row"
    order = [line.strip() for line in dealt.source.splitlines()]
    assert order.index("for other in range(1, lanes):") > order.index("barrier()")
    assert order.index("if lane == 0:") > order.index("total = add_float32(total, ptotal)")


def test_lanes_wait_before_they_read_what_others_stored():
    loops = (
        "        for j in range(7):\n            y[row * 7 + j] = x[row * 7 + j]\n"
        "        for j in range(7):\n            x[row * 7 + j] = y[row * 7 + 6 - j]\n"
    )
    kernel = kernel_of(
        "    x = float32_pointer(buffers, operands[0])\n"
        "    y = float32_pointer(buffers, operands[1])\n"
        "    for row in range(lo, hi):\n" + loops,
        "from tracejit.jit.lowering.abi import float32_pointer\n",
    )
    first, second = grid.deal(kernel).source.split("y[row * 7 + j] = x[row * 7 + j]")
    assert "barrier()" not in first.split("def example")[1]
    assert second.index("barrier()") < second.index("y[row * 7 + 6 - j]")


def test_stores_whose_place_is_read_from_memory_stay_in_order():
    body = (
        "    x = int64_pointer(buffers, operands[0])\n"
        "    for j in range(7):\n"
        "        k = x[j]\n"
        "        x[k] = j\n"
    )
    kernel = kernel_of(body, "from tracejit.jit.lowering.abi import int64_pointer\n")
    assert grid.deal(kernel).kind == "single"
