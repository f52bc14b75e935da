"""Names and habits of packages: hooks that are pickled, names of the user's own, places to ask."""

import copy
import pickle
import sys

import pytest

import tracejit
from tracejit.debug.torch_scripts import run_script
from tracejit.utils import _foreach_utils


class Hooked(tracejit.nn.Linear):
    def __init__(self):
        super().__init__(2, 2)
        self.seen = []
        self._register_load_state_dict_pre_hook(self.note)
        self._register_load_state_dict_pre_hook(self.note_module, with_module=True)

    def note(self, state, prefix, *rest):
        self.seen.append(prefix)

    def note_module(self, module, state, prefix, *rest):
        self.seen.append(type(module).__name__)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_a_module_with_hooks_of_loading_is_copied_with_them(copied):
    module = copied(Hooked())
    module.load_state_dict(module.state_dict())
    assert module.seen == ["", "Hooked"]


class Own(tracejit.autograd.Function):
    """Its helpers bear names that the library might have used."""

    @staticmethod
    def forward(ctx, x):
        ctx.function = Own
        ctx.save_for_backward(x)
        return Own._run_forward(x)

    @staticmethod
    def _run_forward(x):
        return x * x

    @staticmethod
    def _sets_up():
        raise AssertionError("nobody calls it")

    @staticmethod
    def _backward(grad, x):
        return 2 * grad * x

    @staticmethod
    def backward(ctx, grad):
        ctx.function._node_class = None
        return Own._backward(grad, *ctx.saved_tensors)


def test_names_of_a_users_function_are_the_users():
    for _ in range(2):
        x = tracejit.tensor([3.0], requires_grad=True)
        Own.apply(x).sum().backward()
        assert x.grad.tolist() == [6.0]


def test_libraries_of_pytorchs_are_not_loaded(tmp_path):
    with pytest.raises(OSError, match="cannot open shared object file"):
        tracejit.ops.load_library("/nowhere/_C.so")
    there = tmp_path / "_C.so"
    there.touch()
    with pytest.raises(OSError, match="cannot be loaded here"):
        tracejit.ops.load_library(there)


def test_cuda_is_built_only_with_what_it_needs(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert not tracejit.backends.cuda.is_built() and not tracejit.cuda.is_available()
    with pytest.raises(AssertionError, match="not compiled with CUDA"):
        tracejit.cuda.current_stream()


def test_tensors_in_groups_keep_their_neighbours():
    x, y = tracejit.ones(1), tracejit.ones(1, dtype=tracejit.float64)
    groups = _foreach_utils._group_tensors_by_device_and_dtype([[x, y], [None, x], []])
    (one, _), (other, _) = groups.values()
    assert one[0][0] is x and one[1] == [None] and one[2] == [] and other[1][0] is x
    with pytest.raises(RuntimeError, match="different lengths"):
        _foreach_utils._group_tensors_by_device_and_dtype([[x, y], [x]])


def test_scripts_see_a_module_named_torch(tmp_path, monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "torch"]:
        monkeypatch.delitem(sys.modules, name)  # where oracle tests imported PyTorch
    script = tmp_path / "script.py"
    script.write_text("import torch\nname = torch.__name__\nimport torch.nn\n"
                      "layer = torch.nn.ReLU\n")
    found = run_script(str(script), [])
    assert found["name"] == "torch" and tracejit.__name__ == "tracejit"
    assert found["layer"] is tracejit.nn.ReLU


def test_numbers_that_are_not_known_yet_are_none():
    for kind in (tracejit.SymInt, tracejit.SymFloat, tracejit.SymBool):
        assert not isinstance(tracejit.ones(2).shape[0], kind)
        with pytest.raises(NotImplementedError):
            kind(3)
    assert tracejit.Future is tracejit.futures.Future
