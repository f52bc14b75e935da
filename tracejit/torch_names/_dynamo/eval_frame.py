"""PyTorch's `torch._dynamo.eval_frame`: the class that compiled modules have.

In: nothing. Out: the class, for `isinstance`.
"""

from tracejit.jit.runtime.scripted_module import ScriptedModule as OptimizedModule

__all__ = ["OptimizedModule"]
