"""Targets of native kernels: each baseline computes right, and a lacking processor is named."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tracejit
from tests.runtime.programs import ADD_ONE, GELU
from tracejit import config
from tracejit.config import TARGETS
from tracejit.jit.lowering import native, target
from tracejit.jit.runtime import cache

ROOT = Path(__file__).resolve().parents[2]
HERE = [name for name in TARGETS if not target.missing_features(name)]
BASELINES = [name for name in HERE if name != "native"]


def test_the_flag_lists_the_targets():
    assert TARGETS == ("native", *target.BASELINES)


def test_native_is_this_processor():
    with config.override(target="native"):
        assert target.processor() == target.processor("native") == target.host_cpu()


@pytest.mark.parametrize("name", BASELINES)
def test_a_baseline_says_nothing_of_this_processor(name):
    found, features = target.processor(name)
    assert found == name and set(features.split(",")) == {f"+{f}" for f in target.BASELINES[name]}


def test_keys_differ_by_target():
    keys = {name: cache.environment_key(name) for name in HERE}
    assert len(set(keys.values())) == len(HERE)
    assert keys[config.flags.target] == cache.environment_key()


def test_a_processor_without_the_features_is_refused(monkeypatch):
    monkeypatch.setattr(target, "host_cpu", lambda: ("old", "+sse3,+avx"))
    monkeypatch.setattr(target.platform, "machine", lambda: "x86_64")
    with pytest.raises(target.TargetError, match=r"TRACEJIT_TARGET=x86-64-v3: this processor "
                       r"\(old\) lacks .*avx2, bmi, .*fma.*; take an older baseline, or native"):
        target.processor("x86-64-v3")
    monkeypatch.setattr(target.platform, "machine", lambda: "aarch64")
    with pytest.raises(target.TargetError, match="lacks x86-64 .it is aarch64."):
        target.processor("x86-64-v2")


def test_a_captured_call_raises_it(monkeypatch, tmp_path):
    """It does not fall back to op by op with a warning, as for a kernel that cannot be compiled."""
    monkeypatch.setitem(target.BASELINES, "x86-64-v2", ("no-such-feature",))
    cache._key_of.cache_clear()
    try:
        for verify in (True, False):
            with config.override(target="x86-64-v2", verify_passes=verify):
                f = tracejit.script(lambda x: x * 3.25 + 1.5, mode="compiled")
                with pytest.raises(target.TargetError, match="no-such-feature"):
                    f(tracejit.ones(3))
    finally:
        cache._key_of.cache_clear()


@pytest.mark.parametrize("name", BASELINES)
def test_kernels_in_one_process_are_of_their_target(name):
    def f(x, w):
        y = tracejit.nn.functional.conv2d(x, w).exp().sum((2, 3))
        return (y @ y.T).tanh(), (x.half() * 2).float().sum()

    tracejit.manual_seed(0)
    x, w = tracejit.rand(2, 3, 9, 9), tracejit.rand(4, 3, 3, 3)
    wanted = f(x, w)
    with config.override(target=name):
        found = tracejit.script(f, mode="compiled")(x, w)
    for a, b in zip(wanted, found):
        assert tracejit.allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", BASELINES)
def test_one_text_has_an_address_for_each_target(name):
    found = {}
    for chosen in ("native", name, "native"):
        with config.override(target=chosen):
            address = cache.functions_of([ADD_ONE])[ADD_ONE.digest]
            assert found.setdefault(chosen, address) == address, "it is found again"
    assert len(set(found.values())) == 2


# A slice of the suite: kernels' arithmetic, half floats, library kernels, elementary functions.
SLICE = [
    "tests/runtime/test_kernel_arithmetic.py", "tests/lowering/test_half.py",
    "tests/lowering/test_library.py",
]


@pytest.mark.slow
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("name", BASELINES)
def test_a_slice_of_the_suite_passes(name, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-m", "not oracle and not slow and not full",
         "-p", "no:cacheprovider", *SLICE],
        env={**os.environ, "TRACEJIT_TARGET": name, "TRACEJIT_CACHE_DIR": str(tmp_path)},
        cwd=ROOT, capture_output=True, text=True, timeout=1500,
    )  # fmt: skip
    assert done.returncode == 0 and re.search(r"\d+ passed", done.stdout), done.stdout[-3000:]


def assembly(kernel, by_numba):
    """The machine code of a kernel as text; the tests' own processor would run more than it may."""
    import llvmlite.binding as llvm

    native._initialize()
    texts = (native._emit_with_numba(kernel, native.namespace_of(kernel)) if by_numba
             else native.emit_kernel(kernel))
    machine = native._machine()
    module = native._parsed(texts, machine, llvm.create_context())
    native._optimize(module, machine)
    return machine.emit_assembly(module)


@pytest.mark.parametrize("by_numba", [False, True])
@pytest.mark.parametrize(("name", "never"), [
    ("x86-64-v2", r"%[yz]mm|\bv(fmadd|mulps|addps|movups)"), ("x86-64-v3", r"%zmm|%k[1-7]"),
])
def test_code_for_a_baseline_has_no_newer_instructions(name, never, by_numba):
    if name not in BASELINES:
        pytest.skip(f"this processor is no {name}")
    with config.override(target=name):
        text = assembly(GELU, by_numba)
    assert "%xmm" in text or "%ymm" in text
    assert re.search(never, text) is None, re.search(f".*({never}).*", text)[0]
