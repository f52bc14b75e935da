"""PyTorch's `torch._dynamo`: marks and questions that `tracejit.compiler` has, and its switches.

In: settings that programs make before they compile. Out: nothing changes; `TRACEJIT_MAX_ENTRIES`
limits the programs of a function.
"""

from types import SimpleNamespace
from typing import Any

from tracejit._dynamo import eval_frame  # noqa: F401
from tracejit._dynamo.eval_frame import OptimizedModule  # noqa: F401
from tracejit.compiler import (  # noqa: F401
    allow_in_graph,
    assume_constant_result,
    disable,
    is_compiling,
    reset,
)
from tracejit.debug.explain import explain  # noqa: F401

config = SimpleNamespace(
    cache_size_limit=8, recompile_limit=8, accumulated_cache_size_limit=256, suppress_errors=False,
    verbose=False, capture_scalar_outputs=False, capture_dynamic_output_shape_ops=False,
    optimize_ddp=True, automatic_dynamic_shapes=True, assume_static_by_default=True,
)  # fmt: skip


def graph_break(msg: str = "") -> None:
    """Do nothing: capture ends where it must, and nowhere else."""


def mark_dynamic(t: Any, index: Any, **limits: Any) -> None:
    """Do nothing: sizes are those of each call unless the program depends on them."""


maybe_mark_dynamic = mark_dynamic


def mark_static(t: Any, index: Any = None) -> None:
    """Do nothing: a size that the program depends on is guarded."""


mark_static_address = mark_static
