"""PyTorch's `torch._dynamo`: marks and questions that `tracejit.compiler` has, and its switches.

In: what programs set before they compile. Out: nothing changes; how many programs a function may
have is `TRACEJIT_MAX_ENTRIES`.
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
    """Nothing: capture ends where it must, and nowhere else."""


def mark_dynamic(t: Any, index: Any, **limits: Any) -> None:
    """Nothing to mark: sizes are those of each call unless the program depends on them."""


maybe_mark_dynamic = mark_dynamic


def mark_static(t: Any, index: Any = None) -> None:
    """Nothing to mark: a size that the program depends on is guarded."""


mark_static_address = mark_static
