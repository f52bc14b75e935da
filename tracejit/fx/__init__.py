"""Programs as graphs of calls that can be read and changed; PyTorch's `torch.fx`.

In: modules and functions. Out: graphs of their calls, and modules that run a graph. A
`GraphModule`'s forward is plain Python, which `tracejit.script` captures as it does any.
"""

import tracejit.nn  # noqa: F401 - the files below import parts of it
from tracejit.core.ops import sealing as _sealing
from tracejit.fx import _symbolic_trace, passes
from tracejit.fx.code import CodeGen
from tracejit.fx.concrete_arguments import PH
from tracejit.fx.graph import Graph
from tracejit.fx.graph_module import GraphModule
from tracejit.fx.interpreter import Interpreter, Transformer
from tracejit.fx.node import Node, has_side_effect, map_arg
from tracejit.fx.proxy import Proxy
from tracejit.fx.subgraph_rewriter import replace_pattern
from tracejit.fx.tracer import ProxyableClassMeta, Tracer, symbolic_trace
from tracejit.fx.wrapping import wrap

__all__ = ["PH", "CodeGen", "Graph", "GraphModule", "Interpreter", "Node", "Proxy",
           "ProxyableClassMeta", "Tracer", "Transformer", "_symbolic_trace", "has_side_effect",
           "map_arg", "passes", "replace_pattern", "symbolic_trace", "wrap"]

_sealing.seal_all(globals())
