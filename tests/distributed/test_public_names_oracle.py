"""Names of PyTorch's torch.distributed: each is there, with the same arguments and defaults."""

from __future__ import annotations

import importlib
import inspect
import warnings
from typing import Any

import pytest

pytestmark = pytest.mark.oracle

MODULES = [
    "", ".distributed_c10d", ".nn.functional", ".algorithms.join", ".optim", ".constants",
    ".device_mesh", ".algorithms.ddp_comm_hooks", ".algorithms.ddp_comm_hooks.default_hooks",
    ".algorithms.ddp_comm_hooks.powerSGD_hook", ".algorithms.ddp_comm_hooks.post_localSGD_hook",
    ".algorithms.model_averaging.averagers", ".algorithms.model_averaging.utils", ".fsdp.api",
]  # fmt: skip
# Other things than names for users: of PyTorch's own parts.
NOT_MEANT = {
    "AllgatherOptions", "C10dBackend", "OpaqueBase", "handle_torch_function", "not_none",
    "set_pytorch_distributed_envs_from_justknobs",
}  # fmt: skip
# `tracejit.distributed.rendezvous` is the module, which PyTorch has too, below its function.
OTHER = {"rendezvous"}
# Ours has one more.
ARGUMENTS_DIFFER = {"ZeroRedundancyOptimizer": {"shard_gradients"}}


def _own(module: Any, name: str) -> Any:
    """Return what a public name of PyTorch's module is, None if it comes from elsewhere."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = getattr(module, name)
        if not (inspect.isclass(found) or inspect.isfunction(found)):
            return None
    whole = module.__name__ in ("torch.distributed", "torch.distributed.distributed_c10d")
    home = "torch." if whole else module.__name__  # other modules import names for themselves
    return found if str(found.__module__).startswith(home) else None


def _arguments(what: Any) -> list[tuple[str, str, str]] | None:
    try:
        parameters = inspect.signature(what).parameters.values()
    except (TypeError, ValueError):  # of C++
        return None
    return [
        (one.name, one.kind.name, str(one.default).replace("torch.", "").replace("tracejit.", ""))
        for one in parameters if not one.name.startswith("_")
    ]  # fmt: skip


def _pairs() -> list[tuple[str, str, Any, Any]]:
    pytest.importorskip("torch")
    found = []
    for place in MODULES:
        theirs = importlib.import_module(f"torch.distributed{place}")
        ours = importlib.import_module(f"tracejit.distributed{place}")
        for name in dir(theirs):
            public = not name.startswith("_") and name not in NOT_MEANT | OTHER
            if public and (one := _own(theirs, name)) is not None:
                found.append((place, name, one, getattr(ours, name, None)))
    return found


def test_every_name_is_there() -> None:
    pairs = _pairs()
    assert [(place, name) for place, name, _, ours in pairs if ours is None] == []
    assert len(pairs) > 180


def test_arguments_and_defaults_are_the_same() -> None:
    wrong = []
    for place, name, theirs, ours in _pairs():
        expected, found = _arguments(theirs), _arguments(ours)
        if expected is None or ours is None or "Enum" in str(type(theirs)):
            continue
        found = [one for one in found or () if one[0] not in ARGUMENTS_DIFFER.get(name, ())]
        refused = [one[0] for one in found] == ["args", "kwargs"]
        if found != expected and not refused:
            wrong.append((place, name, expected, found))
    assert wrong == []
