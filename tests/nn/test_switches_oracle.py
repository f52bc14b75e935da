"""What becomes of parameters in conversion and loading, by `__future__`'s switches; names at
PyTorch's places; and what bags, packing and gains do in corner cases; as in PyTorch."""

from __future__ import annotations

import importlib
import itertools

import pytest

import tracejit

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle
SWITCHES = ("overwrite", "swap", None)


class switched:
    def __init__(self, lib, name):
        self.set = getattr(lib.__future__, f"set_{name}_module_params_on_conversion", bool)

    def __enter__(self):
        self.set(True)

    def __exit__(self, *_):
        self.set(False)


def _converted(lib, switch, grad):
    layer = lib.nn.Linear(2, 1)
    before, memory = layer.weight, layer.weight.detach()
    if grad:
        before.grad = lib.ones(1, 2)
    with switched(lib, switch):
        layer.double()
    after, dtypes = layer.weight, [str(x.dtype)[-7:] for x in (before, layer.weight)]
    grads = None if after.grad is None else (after.grad.tolist(), str(after.grad.dtype)[-7:])
    is_parameter = isinstance(after, lib.nn.Parameter) and after.requires_grad
    return after is before, dtypes, grads, is_parameter, str(memory.dtype)[-7:]


@pytest.mark.parametrize("switch, grad", list(itertools.product(SWITCHES, (True, False))))
def test_conversion(switch, grad):
    assert _converted(tracejit, switch, grad) == _converted(torch, switch, grad)


def _loaded(lib, switch, assign):
    one, other = lib.nn.BatchNorm1d(2), lib.nn.BatchNorm1d(2)
    lib.nn.init.constant_(other.weight, 3.0)
    before, given = one.weight, other.state_dict()
    memory = before.detach()
    with switched(lib, switch):
        one.load_state_dict(given, assign=assign)
    seen = [one.weight is before, one.weight.requires_grad, one.weight.tolist(), memory.tolist()]
    same_memory = one.weight.data_ptr() == given["weight"].data_ptr()
    return seen, same_memory, type(one.weight) is lib.nn.Parameter


@pytest.mark.parametrize("switch, assign", list(itertools.product(SWITCHES, (True, False))))
def test_loading(switch, assign):
    assert _loaded(tracejit, switch, assign) == _loaded(torch, switch, assign)


def _refused(lib):
    class Picky(lib.nn.Parameter):
        def module_load(self, other, assign=False):
            return other

    layer = lib.nn.Linear(1, 1)
    layer.weight = Picky(lib.ones(1, 1))
    with switched(lib, "swap"):
        layer.load_state_dict({"weight": lib.ones(1, 1), "bias": lib.ones(1)})


def test_what_fails_in_loading_is_one_of_the_errors():
    texts = []
    for lib in (torch, tracejit):
        with pytest.raises(RuntimeError) as error:
            _refused(lib)
        texts.append(str(error.value).replace("torch.", "tracejit."))
    assert texts[0] == texts[1]


def _below(lib):
    seen = []
    model = lib.nn.Sequential(lib.nn.Linear(1, 1), lib.nn.Sequential(lib.nn.Linear(1, 1)))
    state = model.state_dict()
    for child in (model[1], model[1][0]):
        child.register_load_state_dict_pre_hook(
            lambda m, state, prefix, *rest: seen.append((prefix, list(state))))  # fmt: skip
    model[1].register_load_state_dict_pre_hook(lambda m, state, prefix, *rest: state.clear())
    return seen, model.load_state_dict(state, strict=False), list(state)


def test_hooks_of_a_child_see_what_is_below_it():
    assert repr(_below(tracejit)) == repr(_below(torch))


def test_names_of_lazy_parameters():
    place = tracejit.nn.parameter
    assert place.is_lazy(place.UninitializedBuffer()) and not place.is_lazy(tracejit.ones(1))
    assert place.UninitializedParameter is tracejit.nn.UninitializedParameter
    assert not hasattr(place, "nothing")


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("last, padding", [(3, None), (3, 5), (4, None), (0, 5)])
def test_the_last_bag_goes_on_to_the_end(mode, last, padding):
    found = []
    for lib in (torch, tracejit):
        table = lib.arange(12.0).reshape(6, 2)
        bags = lib.nn.functional.embedding_bag(
            lib.tensor([0, 1, 2, 3]), table, lib.tensor([0, 3, last]), mode=mode,
            include_last_offset=True, padding_idx=padding)  # fmt: skip
        found.append(bags.tolist())
    assert found[0] == found[1]


def test_empty_tensors_are_refused_before_lengths_are_looked_at():
    for lib in (torch, tracejit):
        with pytest.raises(RuntimeError, match="empty tensor"):
            lib.nn.utils.rnn.pack_padded_sequence(lib.randn(0, 0), lib.randn(1, 1, 1, 1))


@pytest.mark.parametrize("name", [f"conv_transpose{n}d" for n in (1, 2, 3)])
def test_gains(name):
    assert tracejit.nn.init.calculate_gain(name) == torch.nn.init.calculate_gain(name)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("index, padding", [(6, None), (-1, None), (6, 0)])
def test_bags_of_rows_that_are_not_there(mode, index, padding):
    for lib in (torch, tracejit):
        call = lib.nn.functional.embedding_bag
        with pytest.raises(RuntimeError, match="Expected idx >= 0|valid range"):
            call(lib.tensor([[index, 1]]), lib.ones(6, 2), mode=mode, padding_idx=padding)


@pytest.mark.parametrize("rows, indices", [(0, []), (10, [[0, 2], [4, 3]])])
def test_sparse_gradients_of_rows_without_elements(rows, indices):
    for lib in (torch, tracejit):
        layer = lib.nn.Embedding(rows, 0, sparse=True)
        layer(lib.tensor(indices, dtype=lib.int64)).sum().backward()
        assert layer.weight.grad.is_sparse and tuple(layer.weight.grad.shape) == (rows, 0)


def test_masks_of_containers_are_of_the_scores_dtype():
    masks = []
    for lib in (torch, tracejit):
        prune = importlib.import_module(f"{lib.__name__}.nn.utils.prune")
        method = prune.L1Unstructured(amount=1)
        method._tensor_name = "weight"
        container = prune.PruningContainer(method)
        mask = container.compute_mask(lib.tensor([1.0, 2.0, 3.0]), lib.tensor([0, 1, 1]))
        masks.append((mask.tolist(), str(mask.dtype).split(".")[1]))
    assert masks[0] == masks[1]
