"""PyTorch's `torch.fx._symbolic_trace`: names that programs import from there."""

from types import FunctionType

from tracejit.fx._compatibility import compatibility
from tracejit.fx.concrete_arguments import PH, PHBase, PHWithMeta, _assert_is_none
from tracejit.fx.tracer import ProxyableClassMeta, Tracer, is_fx_tracing, symbolic_trace
from tracejit.fx.wrapping import wrap

is_fx_symbolic_tracing = is_fx_tracing

__all__ = ["PH", "FunctionType", "PHBase", "PHWithMeta", "ProxyableClassMeta", "Tracer",
           "_assert_is_none", "compatibility", "is_fx_symbolic_tracing", "is_fx_tracing",
           "symbolic_trace", "wrap"]
