"""Logs for TensorBoard: `SummaryWriter`, which the tensorboardX package writes.

In: numbers, arrays and tensors. Out: event files. ImportError says what to install where that
package, which comes with `pip install tracejit[tensorboard]`, is missing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracejit.core.eager.tensor import Tensor
from tracejit.core.ops import sealing as _sealing
from tracejit.utils._pytree import tree_map_only


def _plain(values: Any) -> Any:
    """Replace tensors in arguments by NumPy arrays, which the package knows."""
    return tree_map_only(Tensor, lambda x: x.detach().cpu().numpy(), values)


def _writer_class() -> type:
    try:
        import tensorboardX
    except ImportError as error:
        raise ImportError("tracejit.utils.tensorboard needs the tensorboardX package, which is not "
                          f"installed ({error}): pip install tracejit[tensorboard]") from error

    class SummaryWriter(tensorboardX.SummaryWriter):
        """Writes what is added to it to event files in `log_dir`; tensorboardX's, for tensors.

        Arguments may be tensors, alone or in lists and dicts.
        """

        def __getattribute__(self, name: str) -> Any:
            found = super().__getattribute__(name)
            # `add_graph` must get the tensors themselves, and `add_event` takes none.
            if not name.startswith("add_") or name in ("add_graph", "add_event"):
                return found

            def add(*args: Any, **kwargs: Any) -> Any:
                return found(*_plain(args), **_plain(kwargs))

            return add

        def add_scalar(self, tag: str, scalar_value: Any, *args: Any, **kwargs: Any) -> None:
            """Log one number. Raises NotImplementedError for what is no number, array or tensor."""
            if not isinstance(scalar_value, np.ndarray) and not np.isscalar(scalar_value):
                raise NotImplementedError(f"Got {type(scalar_value)}, but numpy array or torch "
                                          "tensor are expected.")
            super().add_scalar(tag, scalar_value, *args, **kwargs)

        def add_graph(self, model: Any, input_to_model: Any = None, verbose: bool = False,
                      use_strict_trace: bool = True) -> None:
            """Log the captured graph of `model` called with `input_to_model`.

            input_to_model    the argument, or a tuple or list of the arguments
            verbose           also print the graph
            use_strict_trace  without effect: containers of every type are captured

            The model, its state and the random generators stay as they are. CaptureError names the
            lines why a model has no single graph.
            """
            from tensorboardX.proto.event_pb2 import Event

            from tracejit.utils.tensorboard_graph import captured, definition

            graph = captured(model, input_to_model)
            if verbose:
                print(graph)
            drawn = definition(graph, model).SerializeToString()
            self._get_file_writer().add_event(Event(graph_def=drawn))

    return SummaryWriter


def __getattr__(name: str) -> Any:
    """Return the class when code asks for it: its import raises ImportError where the package is
    missing."""
    if name != "SummaryWriter":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = _writer_class()
    _sealing.seal_all({"__name__": __name__, name: found})
    return found


_sealing.seal(__getattr__)  # type: ignore[arg-type]
