"""Names that public programs ask for while they are imported, and need nowhere without a GPU."""

import importlib

import pytest
import torch

import tracejit

pytestmark = pytest.mark.oracle


@pytest.mark.parametrize("name", ["Stream", "Event", "ExternalStream", "CUDAGraph", "graph"])
def test_streams_are_named_and_refused(name):
    with pytest.raises(RuntimeError, match=f"{name} is not supported"):
        getattr(tracejit.cuda, name)()


def test_no_stream_is_a_context_that_changes_nothing():
    with tracejit.cuda.stream(None), tracejit.cuda.StreamContext(None):
        assert not tracejit.cuda.is_available() or tracejit.ones(1).item() == 1


def test_masks_index_by_batched_places():
    mode = importlib.import_module("tracejit._dynamo._trace_wrapped_higher_order_op")
    shown = tracejit.tensor([[True, False], [True, True]])
    with mode.TransformGetItemToIndex():
        rows = tracejit.vmap(tracejit.vmap(lambda b, k: shown[b, k], (None, 0)), (0, None))
        assert rows(tracejit.arange(2), tracejit.arange(2)).tolist() == shown.tolist()


def test_classes_of_mappings_are_nodes_of_trees():
    from tracejit.utils import _pytree as trees

    class Output(dict):
        pass

    trees.register_pytree_node(Output, trees._dict_flatten,
                               lambda x, keys: Output(trees._dict_unflatten(x, keys)),
                               flatten_with_keys_fn=trees._dict_flatten_with_keys)
    leaves, spec = trees.tree_flatten(Output(a=1, b=[2]))
    assert leaves == [1, 2] and type(trees.tree_unflatten(leaves, spec)) is Output
    assert [trees.keystr(p) for p, _ in trees.tree_leaves_with_path(Output(a=1))] == ["['a']"]


@pytest.mark.parametrize("name", ["tracejit", "torch"])
def test_futures(name):
    futures = importlib.import_module(f"{name}.futures")
    first, second = futures.Future(), futures.Future()
    failing = first.then(lambda f: f.wait() / 0)
    twice, seen = second.then(lambda f: f.value() * 2), []
    second.add_done_callback(lambda f: seen.append(f.wait()))
    assert not first.done() and not twice.done()
    first.set_result(1)
    second.set_result(4)
    assert twice.wait() == 8 and seen == [4] and futures.wait_all([first, twice]) == [1, 8]
    assert futures.collect_all([first]).wait()[0] is not None and futures.wait_all([]) == []
    with pytest.raises((ZeroDivisionError, RuntimeError), match="division by zero"):
        failing.wait()
    with pytest.raises(RuntimeError, match="completed once"):
        first.set_result(2)


def test_functions_are_called_in_no_other_process():
    assert importlib.import_module("tracejit.distributed.rpc").is_available() is False


def test_inner_names_are_keys_and_call():
    aten = tracejit.ops.aten
    assert aten.add.Tensor is aten.add.Tensor and aten.add.Tensor != aten.add.Scalar
    assert aten.mm.default(tracejit.ones(1, 2), tracejit.ones(2, 1)).tolist() == [[2.0]]
    assert aten.relu(tracejit.tensor([-1.0])).tolist() == [0.0]
    with pytest.raises(NotImplementedError, match="aten._to_copy.default"):
        aten._to_copy.default(tracejit.ones(1))


def test_inside_of_vmap_is_known():
    asked = tracejit._C._are_functorch_transforms_active
    seen = []

    def f(x):
        seen.append(asked())
        return x * 2

    tracejit.vmap(f)(tracejit.ones(2))
    assert seen == [True] and not asked()
    assert tracejit._C._disabled_torch_function_impl(tracejit.neg, (), (tracejit.ones(1),)) == -1
    assert tracejit._C._get_tracing_state() is None


def test_private_places_of_printing_loading_and_folders(monkeypatch):
    x = tracejit.tensor([[1.0, 2.0], [0.5, -3.0]])
    printed = importlib.import_module("tracejit._tensor_str")
    assert printed._tensor_str(x, 0) == torch._tensor_str._tensor_str(torch.tensor(x.tolist()), 0)
    assert printed.PRINT_OPTS.threshold == torch._tensor_str.PRINT_OPTS.threshold
    loading = importlib.import_module("tracejit.utils.data.dataloader")
    batches = iter(loading.DataLoader([1, 2]))
    assert isinstance(batches, loading._BaseDataLoaderIter)
    assert isinstance(batches, loading._SingleProcessDataLoaderIter)
    monkeypatch.setenv("TORCH_HOME", "/somewhere")
    assert tracejit.hub._get_torch_home() == "/somewhere" == torch.hub._get_torch_home()
    assert tracejit.hub.get_dir() == torch.hub.get_dir()


def test_batches_are_split_and_joined():
    parallel = importlib.import_module("tracejit.nn.parallel.scatter_gather")
    whole = {"x": tracejit.arange(6.0).reshape(3, 2), "n": 4}
    parts = parallel.scatter(whole, ["cpu", "cpu"])
    assert [p["x"].shape[0] for p in parts] == [2, 1] and [p["n"] for p in parts] == [4, 4]
    assert parallel.gather(parts, "cpu")["x"].tolist() == whole["x"].tolist()


def test_optimizers_of_several_processes_are_refused():
    many = importlib.import_module("tracejit.distributed.optim")
    with pytest.raises(NotImplementedError, match="ZeroRedundancyOptimizer"):
        many.ZeroRedundancyOptimizer([tracejit.ones(1)])
