"""The public names: PyTorch's, complete where a family is there, cheap to import, one version."""

import importlib.util
import inspect
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import tracejit
from tracejit.core.ops.operators import Operators

ROOT = Path(__file__).resolve().parent.parent
OWN = {
    "CaptureError",
    "CompiledFunction",
    "DeviceUnavailable",
    "RecompileError",
    "compare",
    "config",
    "datasets",
    "debug",
    "jit",
    "logs",
    "no_recompile",
    "script",
    "trace",
    # rooms
    "core",
    "safetensors",
    "saving",
}
HEAVY = ("numba", "llvmlite", "scipy", "matplotlib", "cupy", "torch", "sklearn")


def public(module):
    return {name for name in dir(module) if not name.startswith("_")} - {"annotations", "Any"}


def run_python(code):
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_importing_brings_in_nothing_heavy():
    loaded = run_python(
        "import sys, tracejit; print(sorted({m.split('.')[0] for m in sys.modules}))"
    )
    assert [name for name in HEAVY if f"'{name}'" in loaded] == []
    rooms = run_python(
        "import sys, tracejit; print([m for m in sys.modules if m.startswith('tracejit.')])"
    )
    assert [r for r in ("jit", "lowering", "passes", "runtime") if f"tracejit.{r}" in rooms] == []


def test_importing_takes_no_longer_than_three_times_numpy(tmp_path, monkeypatch):
    """With bytecode, as every import but the first has it; 0.3 s in all where NumPy takes 0.1 s,
    and as much more as the machine is slower."""
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", str(tmp_path))
    code = ("import time; now = time.process_time; a = now(); import numpy; b = now()\n"
            "import tracejit; c = now(); print((c - a) / (b - a))")
    run_python(code)
    assert min(float(run_python(code)) for _ in range(6)) < 3


def test_one_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert tracejit.version.tracejit == project["version"]
    assert tracejit.__version__.endswith(f"+tracejit.{project['version']}")


def test_builtin_names_are_dtypes():
    assert tracejit.bool is tracejit.bool_ and repr(tracejit.bool) == "tracejit.bool"
    assert (tracejit.float, tracejit.double, tracejit.half) == (
        tracejit.float32,
        tracejit.float64,
        tracejit.float16,
    )
    assert (tracejit.short, tracejit.int, tracejit.long) == (
        tracejit.int16,
        tracejit.int32,
        tracejit.int64,
    )


def test_small_functions():
    assert tracejit.is_tensor(tracejit.nn.Parameter()) and not tracejit.is_tensor([1])
    assert tracejit.is_floating_point(tracejit.ones(1)) and not tracejit.is_floating_point(
        tracejit.arange(2)
    )
    assert tracejit.numel(tracejit.ones(2, 3)) == 6
    x = tracejit.ones(2, 3)
    assert x.__rmatmul__(tracejit.ones(4, 2)).shape == (4, 3)
    assert x.__rmatmul__(2) is NotImplemented
    assert tracejit.newaxis is None and tracejit.pi == pytest.approx(3.141592653589793)


@pytest.mark.parametrize(
    "name", ["script", "trace", "compile", "compare", "no_recompile", "CaptureError"]
)
def test_compiling_names_are_there(name):
    assert callable(getattr(tracejit, name)) and name in dir(tracejit)


def test_unknown_names_are_errors():
    with pytest.raises(AttributeError, match="module 'tracejit' has no attribute 'nothing'"):
        _ = tracejit.nothing
    with pytest.raises(ImportError):
        from tracejit import nothing  # noqa: F401


@pytest.mark.oracle
def test_every_public_name_is_pytorch_s():
    torch = pytest.importorskip("torch")
    # torch.onnx is there once it is imported, symbolic_numbers once a test asked for SymInt.
    extra = {"is_tensor", "bool_", "onnx", "symbolic_numbers"}
    assert sorted(public(tracejit) - public(torch) - OWN - extra) == []
    for mine, theirs in ((tracejit.nn, torch.nn), (tracejit.optim, torch.optim)):
        files = {n for n, x in vars(mine).items() if inspect.ismodule(x)}
        assert sorted(public(mine) - public(theirs) - files) == []
    for name in ("functional", "init", "utils"):
        names = {
            n
            for n in public(getattr(tracejit.nn, name))
            if inspect.isfunction(getattr(getattr(tracejit.nn, name), n))
        }
        assert sorted(names - public(getattr(torch.nn, name)) - {"fans"}) == []


@pytest.mark.oracle
def test_methods_with_a_function_of_their_name_have_it():
    """A method of the op families that is also a function in PyTorch is one here."""
    torch = pytest.importorskip("torch")
    methods = {
        name for name in vars(Operators) if not name.startswith("_") and not name.endswith("_")
    }
    functions = {
        name
        for name in methods
        if callable(getattr(torch, name, None)) and hasattr(torch.Tensor, name)
    }
    assert len(functions) > 100
    assert sorted(functions - public(tracejit)) == []


@pytest.mark.skipif(importlib.util.find_spec("cupy") is not None, reason="CuPy is installed")
def test_cuda_without_cupy_says_what_to_install():
    cuda = tracejit.cuda
    assert not cuda.is_available() and cuda.device_count() == 0
    assert not tracejit.backends.cuda.is_available() and tracejit.backends.cpu.blas()
    calls = (
        cuda.current_device,
        cuda.synchronize,
        cuda.get_device_name,
        lambda: cuda.set_device(0),
    )
    for call in calls:
        with pytest.raises(tracejit.DeviceUnavailable, match=r"pip install tracejit\[cuda\]"):
            call()
    with pytest.raises(ValueError, match="Expected a cuda device, but got: cpu"):
        cuda.get_device_name("cpu")
    cuda.manual_seed_all(5)
    assert tracejit.initial_seed() == 5


def test_forked_draws_leave_the_state_alone():
    tracejit.manual_seed(0)
    with tracejit.random.fork_rng():
        first = tracejit.rand(3).tolist()
    assert tracejit.rand(3).tolist() == first
    with tracejit.random.fork_rng(enabled=False):
        tracejit.rand(3)
    assert tracejit.rand(3).tolist() != first


def test_the_switch_for_determinism_is_not_frozen_into_a_program():
    @tracejit.script
    def doubled(x):
        asked = tracejit.are_deterministic_algorithms_enabled()
        tracejit.use_deterministic_algorithms(not asked)
        return x * 2, asked

    answers = [doubled(tracejit.ones(1))[1] for _ in range(4)]
    assert answers == [False, True, False, True]
    assert not tracejit.are_deterministic_algorithms_enabled()


def test_reading_a_switch_is_no_break_and_what_it_said_is_not_frozen():
    @tracejit.script(fullgraph=True)
    def told(x):
        asked = tracejit.are_deterministic_algorithms_enabled()
        return x * 2 if asked else x, tracejit.get_float32_matmul_precision()

    seen = [told(tracejit.ones(1))]
    try:
        tracejit.use_deterministic_algorithms(True)
        seen += [told(tracejit.ones(1)), told(tracejit.ones(1))]
        tracejit.set_float32_matmul_precision("high")
        seen.append(told(tracejit.ones(1)))
    finally:
        tracejit.use_deterministic_algorithms(False)
        tracejit.set_float32_matmul_precision("highest")
    seen.append(told(tracejit.ones(1)))
    found = [(x.item(), precision) for x, precision in seen]
    assert found == [(1, "highest"), (2, "highest"), (2, "highest"), (2, "high"), (1, "highest")]
    assert told.report().compiles == 3
