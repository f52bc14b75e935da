"""Names that public programs ask for while they are imported, and need nowhere without a GPU."""

import importlib

import pytest

import tracejit


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
