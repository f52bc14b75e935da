"""Whole programs written for PyTorch: run by it, by tracejit in its place, and compiled.

A program is a file that imports torch. It has `model()`, which gives a module, and `train(model)`,
which trains it and gives what there is to compare: losses, tensors, texts, in lists and dicts. Only
its imports are changed for tracejit, and parameters start as PyTorch initialised them. What a
program hands to `torch.compile` is compiled the third time and plain before.
"""

import re
import types
import warnings
from pathlib import Path

import numpy as np
import pytest

import tracejit

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle

FOLDER = Path(__file__).parent
PROGRAMS = sorted(path.stem for path in FOLDER.glob("*.py") if not path.stem.startswith("test_"))
# Programs whose compiled functions hold what cannot be replayed, and what that is.
BREAKS = {
    "checkpointed_blocks": "checkpoint is called in the captured function",
    "kmeans": "loops that a value ends leave names that only their bodies set",
    "module_hooks": "hooks that write to a dict run at each backward",
    "one_stage_detector": "how many targets a cell gets depends on values",
    "physics_informed": "requires_grad of an argument is turned on, which the caller sees",
    "packed_sequences": "lengths decide how many rows each step has",
    "wgan_gp": "the generator's step turns requires_grad of the critic off and on",
}

ALONE = re.compile(r"^(\s*)import torch$", re.MULTILINE)
OTHERS = re.compile(r"^(\s*(?:import|from)) torch\b(?=[. ])", re.MULTILINE)


def loaded(name, library):
    """The program as a module; over tracejit, with its imports and nothing else changed."""
    text = (FOLDER / f"{name}.py").read_text()
    if library is tracejit:
        text = ALONE.sub(r"\1import tracejit as torch", text)
        text = OTHERS.sub(r"\1 tracejit", text)
    module = types.ModuleType(f"{name}_{library.__name__}")
    module.__file__ = str(FOLDER / f"{name}.py")
    exec(compile(text, module.__file__, "exec"), vars(module))
    return module


def shown(value):
    """What a program gave, without either library: arrays for tensors."""
    if isinstance(value, (torch.Tensor, tracejit.Tensor)):
        return value.detach().numpy()
    if isinstance(value, dict):
        return {key: shown(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [shown(item) for item in value]
    return value.replace("tracejit", "torch") if isinstance(value, str) else value


def compare(ours, theirs, where, rtol=1e-4, atol=1e-5):
    if isinstance(theirs, dict):
        assert list(ours) == list(theirs), where
        for key in theirs:
            compare(ours[key], theirs[key], f"{where}[{key!r}]", rtol, atol)
    elif isinstance(theirs, list):
        assert len(ours) == len(theirs), where
        for place, (a, b) in enumerate(zip(ours, theirs)):
            compare(a, b, f"{where}[{place}]", rtol, atol)
    elif isinstance(theirs, np.ndarray):
        assert isinstance(ours, np.ndarray), where
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape), where
        np.testing.assert_allclose(ours, theirs, rtol, atol, err_msg=where)
    elif isinstance(theirs, float):
        assert type(ours) is float and ours == pytest.approx(theirs, rtol, atol), where
    else:
        assert type(ours) is type(theirs) and ours == theirs, where


def outcome(program, state=None):
    """What a run gave with the state it left, and the state it began with, as arrays."""
    model = program.model()
    if state is not None:
        assert list(model.state_dict()) == list(state)
        model.load_state_dict({key: tracejit.from_numpy(x.copy()) for key, x in state.items()})
    begin = {key: shown(x).copy() for key, x in model.state_dict().items()}
    result = {"result": shown(program.train(model)), "repr": shown(repr(model)),
              "state": shown(dict(model.state_dict()))}
    return result, begin


@pytest.fixture(scope="module")
def in_pytorch():
    """PyTorch's outcome of each program, found once."""
    found = {}

    def run(name):
        if name not in found:
            with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
                warnings.simplefilter("ignore")
                patch.setattr(torch, "compile", lambda f, **options: f)
                threads = torch.get_num_threads()
                torch.set_num_threads(1)
                torch.manual_seed(0)
                found[name] = outcome(loaded(name, torch))
                torch.set_num_threads(threads)
        return found[name]

    return run


def run_here(name, in_pytorch, monkeypatch, compiler):
    theirs, state = in_pytorch(name)
    monkeypatch.setattr(tracejit, "compile", compiler)
    tracejit.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours, _ = outcome(loaded(name, tracejit), state)
    compare(ours, theirs, name)


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_in_pytorch(name, in_pytorch, monkeypatch):
    run_here(name, in_pytorch, monkeypatch, lambda f, **options: f)


# Each program in both modes; `make test` compiles one in three, and interprets another third.
TAKEN = {**dict.fromkeys(PROGRAMS[::3], "compiled"), **dict.fromkeys(PROGRAMS[1::3], "graph")}
WAYS = [
    pytest.param(name, mode, marks=() if TAKEN.get(name) == mode else pytest.mark.full)
    for name in PROGRAMS for mode in ("graph", "compiled")
]


@pytest.mark.parametrize(("name", "mode"), WAYS)
def test_compiled_as_in_pytorch(name, mode, in_pytorch, monkeypatch):
    made = []

    def compiler(f, **options):
        made.append(tracejit.script(f, mode=mode, **options))
        return made[-1]

    run_here(name, in_pytorch, monkeypatch, compiler)
    assert made, "the program compiles nothing"
    breaks = [f"{b.line}: {b.reason}" for f in made for b in f.report().breaks]
    assert bool(breaks) == (name in BREAKS), breaks


def test_there_are_enough_programs():
    assert len(PROGRAMS) >= 20


def test_a_difference_is_found(in_pytorch):
    theirs, _ = in_pytorch("train_loop")
    changed = {**theirs, "result": {**theirs["result"], "losses": [0.0]}}
    with pytest.raises(AssertionError, match="losses"):
        compare(changed, theirs, "train_loop")
