"""Names of PyTorch's `torch.distributed` that are refused when they are used.

In: anything. Out: NotImplementedError with the name. Classes may be asked for by `isinstance`.
"""

from __future__ import annotations

from typing import Any, NoReturn

from tracejit.distributed.errors import refuse

_TEXT = """{text}: refused when it is made.

>>> {name}()
Traceback (most recent call last):
NotImplementedError: {name} is not available in tracejit
"""


def refused_class(name: str, text: str, base: type = object) -> Any:
    """Return a class that raises NotImplementedError when an object of it is made."""

    def made(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
        refuse(name)

    return type(name, (base,), {"__init__": made, "__doc__": _TEXT.format(text=text, name=name)})


_OPTIONS = "Options of a method of PyTorch's ProcessGroup"
AllreduceCoalescedOptions = refused_class("AllreduceCoalescedOptions", _OPTIONS)
AllreduceOptions = refused_class("AllreduceOptions", _OPTIONS)
AllToAllOptions = refused_class("AllToAllOptions", _OPTIONS)
BarrierOptions = refused_class("BarrierOptions", _OPTIONS)
BroadcastOptions = refused_class("BroadcastOptions", _OPTIONS)
GatherOptions = refused_class("GatherOptions", _OPTIONS)
ReduceOptions = refused_class("ReduceOptions", _OPTIONS)
ReduceScatterOptions = refused_class("ReduceScatterOptions", _OPTIONS)
ScatterOptions = refused_class("ScatterOptions", _OPTIONS)
Logger = refused_class("Logger", "PyTorch's figures about DistributedDataParallel")
ProcessGroupGloo = refused_class("ProcessGroupGloo", "Group over gloo")
Reducer = refused_class("Reducer", "PyTorch's part of DistributedDataParallel")


def register_rendezvous_handler(scheme: str, handler: Any) -> NoReturn:
    """Raise NotImplementedError: processes meet by "env://", "tcp://" or "file://".

    >>> register_rendezvous_handler("ftp", None)
    Traceback (most recent call last):
    NotImplementedError: register_rendezvous_handler is not available in tracejit
    """
    refuse("register_rendezvous_handler")
