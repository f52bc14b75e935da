"""PyTorch's `torch.fx._symbolic_trace`: names that programs import from there.

Packages with a tracer of their own (PyTorch Geometric) use its inner names, too.
"""

import functools
from types import FunctionType

from tracejit.fx._compatibility import compatibility
from tracejit.fx.concrete_arguments import PH, PHBase, PHWithMeta, _assert_is_none
from tracejit.fx.proxy import Proxy
from tracejit.fx.tracer import ProxyableClassMeta, Tracer, is_fx_tracing, symbolic_trace
from tracejit.fx.wrapping import Patcher as _Patcher
from tracejit.fx.wrapping import autowrap as _autowrap_check
from tracejit.fx.wrapping import patch_wrapped as _patch_wrapped_functions
from tracejit.fx.wrapping import wrap
from tracejit.nn.module import Module

is_fx_symbolic_tracing = is_fx_tracing
_orig_module_call = Module.__call__
_orig_module_getattr = Module.__getattr__

__all__ = [
    "PH", "FunctionType", "PHBase", "PHWithMeta", "Proxy", "ProxyableClassMeta", "ScriptObject",
    "Tracer", "_Patcher", "_assert_is_none", "_autowrap_check", "_orig_module_call",
    "_orig_module_getattr", "_patch_wrapped_functions", "compatibility", "functools",
    "is_fx_symbolic_tracing", "is_fx_tracing", "symbolic_trace", "wrap",
]  # fmt: skip

wrap("_assert_is_none")


class ScriptObject:
    """Class of objects of TorchScript; nothing here is an instance."""
