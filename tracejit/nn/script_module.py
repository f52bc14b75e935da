"""PyTorch's `torch.jit.ScriptModule`: modules whose forward TorchScript compiles.

In: classes of users that derive from it. Out: plain modules; `tracejit.script` compiles them as it
does any.
"""

from tracejit.nn.module import Module


class ScriptModule(Module):
    """A module like any other; its `script_method`s run as they are.

    >>> issubclass(ScriptModule, Module)
    True
    """
