"""Errors of fx, hub, cuda and utils show the user's lines alone, and one note."""

from __future__ import annotations

import importlib
import traceback
import warnings

import pytest

import tracejit
from tests.errors.test_tracebacks import PACKAGE
from tracejit import config, cuda, fx, hub, nn
from tracejit.core.ops import sealing
from tracejit.fx.passes.shape_prop import ShapeProp
from tracejit.utils import _pytree, benchmark
from tracejit.utils.checkpoint import checkpoint
from tracejit.utils.flop_counter import FlopCounterMode
from tracejit.utils.module_tracker import ModuleTracker


class Branch(nn.Module):
    def forward(self, x):
        return x if x.sum() > 0 else -x


class Square(nn.Module):
    def forward(self, x):
        return x @ x


def deep(x):
    return x @ tracejit.ones(5)


def erased():
    graph = fx.symbolic_trace(Square()).graph
    graph.erase_node(next(iter(graph.nodes)))


def counted():
    with FlopCounterMode(display=False):
        deep(tracejit.ones(2, 3))


WIDE = tracejit.ones(2, 3)
# What fails, and how many of the user's lines it has below the one that calls it.
FAILURES = {
    "a branch in a trace": (lambda: fx.symbolic_trace(Branch()), 1, "Proxy.__bool__"),
    "a graph module": (lambda: fx.symbolic_trace(Square())(WIDE), 1, "matmul"),
    "an interpreter": (
        lambda: fx.Interpreter(fx.symbolic_trace(Square())).run(WIDE), 0, "Interpreter.run"),
    "a node in use": (erased, 0, "Graph.erase_node"),
    "a folder of a hub": (lambda: hub.load("/nosuch", "m", source="local"), 0, "load"),
    "a source of a hub": (lambda: hub.load("a/b", "m", source="where"), 0, "load"),
    "a stream": (lambda: cuda.Stream(), 0, "Stream"),
    "a checkpoint": (lambda: checkpoint(deep, WIDE, use_reentrant=False), 1, "matmul"),
    "a tree": (lambda: _pytree.tree_map(deep, [WIDE]), 1, "matmul"),
    "leaves of a tree": (
        lambda: _pytree.tree_unflatten([1], _pytree.tree_flatten([1, 2])[1]), 0,
        "tree_unflatten"),
    "a counter of operations": (counted, 1, "matmul"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAILURES)
def test_only_lines_of_the_user(name):
    call, deeper, said = FAILURES[name]
    with config.override(tracebacks="short"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(Exception) as caught:
            call()
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert [frame.filename for frame in frames if frame.filename.startswith(PACKAGE)] == []
    assert len(frames) == 2 + deeper  # this test and the lambda, or the function, of the table
    assert caught.value.__notes__ == [f"tracejit: in {said}"]


PLACES = {
    "tracejit.fx": ("symbolic_trace", "replace_pattern", "wrap", "map_arg"),
    "tracejit.hub": ("load", "list", "help", "load_state_dict_from_url"),
    "tracejit.cuda": ("synchronize", "set_device", "get_device_name", "current_device"),
    "tracejit.cuda.memory": ("memory_allocated", "max_memory_allocated"),
    "tracejit.cuda.random": ("manual_seed", "get_rng_state"),
    "tracejit.utils.checkpoint": ("checkpoint", "checkpoint_sequential"),
    "tracejit.utils._pytree": ("tree_map", "tree_flatten", "register_pytree_node"),
    "tracejit.utils.dlpack": ("to_dlpack", "from_dlpack"),
    "tracejit.utils.model_zoo": ("load_url",),
}
METHODS = [fx.Graph.lint, fx.Proxy.__iter__, fx.Interpreter.run, fx.Tracer.trace, cuda.Stream,
           benchmark.Timer.timeit,
           FlopCounterMode.__enter__, ModuleTracker.__enter__, ShapeProp.propagate]  # fmt: skip


def test_public_functions_of_these_rooms_are_sealed():
    found = [getattr(importlib.import_module(place), name)
             for place, names in PLACES.items() for name in names]
    found += [x.__init__ if isinstance(x, type) else x for x in METHODS]
    assert [f for f in found if not sealing.is_sealed(f.__code__)] == []


def test_the_writer_of_logs_is_sealed():
    pytest.importorskip("tensorboardX")
    from tracejit.utils.tensorboard import SummaryWriter

    assert sealing.is_sealed(SummaryWriter.add_graph.__code__)
