"""What an operator's results share with its arguments is what they share in PyTorch.

In: a few of PyTorch's own samples of each operator, laid out in memory in several ways. A result
that looks at an argument's memory where PyTorch's is a copy lets a write to it change the
argument; the other way round such a write is lost.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

import tracejit
from tests.shares import share

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest", reason="PyTorch's samples need it")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from tests.oracle.test_operator_samples import OPERATORS, identity, ours

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]

SAMPLES = 7
# op_db calls their methods that write in place, on arguments; `ours` gives them a copy.
WRITING = ["cauchy", "exponential", "geometric", "log_normal", "normal", "uniform"]
# PyTorch moves a storage that grows.
GROWING = ["resize_", "resize_as_"]


def transposed(x: Any) -> Any:
    back = list(reversed(range(x.ndim)))
    return x.permute(back).contiguous().permute(back)


def gaps_within(x: Any) -> Any:
    return torch.stack([x, x], -1)[..., 0]


def gaps_between(x: Any) -> Any:
    return torch.stack([x, x], 1)[:, 0]


LAYOUTS = {"as it is": lambda x: x, "transposed": transposed, "gaps within": gaps_within,
           "gaps between": gaps_between}  # fmt: skip


class NotCarried(Exception):
    """An argument that is no tensor over strided memory, nor a plain value."""


def carried(x: Any, lay: Callable[[Any], Any], tensors: list[tuple[Any, Any]]) -> tuple[Any, Any]:
    """An argument for PyTorch and the same for tracejit; its tensors are added to `tensors`."""
    if isinstance(x, (list, tuple)) and type(x) in (list, tuple):
        both = [carried(each, lay, tensors) for each in x]
        return type(x)(a for a, _ in both), type(x)(b for _, b in both)
    if isinstance(x, torch.dtype):
        return x, getattr(tracejit, str(x).split(".")[1])
    if not isinstance(x, torch.Tensor):
        if x is not None and not isinstance(x, (int, float, complex, str, slice)):
            raise NotCarried
        return x, x
    if x.layout != torch.strided or x.is_conj() or x.is_neg() or x.dtype == torch.bfloat16:
        raise NotCarried
    x = x.detach()
    theirs = lay(x) if x.numel() and x.ndim else x
    memory = torch.empty(0, dtype=x.dtype).set_(theirs.untyped_storage())
    mine = tracejit.from_numpy(memory.numpy().copy()).as_strided(
        tuple(theirs.shape), theirs.stride(), theirs.storage_offset())
    tensors.append((theirs, mine))
    return theirs, mine


def results(x: Any) -> list[Any]:
    if isinstance(x, (list, tuple)):
        return [found for each in x for found in results(each)]
    return [x] if isinstance(x, (torch.Tensor, tracejit.Tensor)) else []


def shared(result: Any, arguments: list[Any]) -> list[int]:
    """The numbers of those arguments whose memory a result looks at."""
    memory = result.untyped_storage().data_ptr()
    return [k for k, x in enumerate(arguments)
            if result.numel() and x.numel() and x.untyped_storage().data_ptr() == memory]


def called(op: Any, sample: Any, lay: Callable[[Any], Any]) -> tuple[Any, Any, list]:
    """Both results, and the tensors among the arguments; none of what is refused, which is the
    subject of `test_operator_errors`."""
    tensors: list[tuple[Any, Any]] = []
    function = ours(op)
    assert function is not None
    try:
        args = [carried(x, lay, tensors) for x in (sample.input, *sample.args)]
        kwargs = {k: carried(v, lay, tensors) for k, v in sample.kwargs.items()}
        theirs = op(*[a for a, _ in args], **{k: a for k, (a, _) in kwargs.items()})
        mine = function(*[b for _, b in args], **{k: b for k, (_, b) in kwargs.items()})
        return theirs, mine, tensors
    except Exception:
        return None, None, []


def differences(op: Any, layout: str) -> list[str]:
    found = []
    kind = torch.float32 if torch.float32 in op.dtypes else torch.int64
    every = list(op.sample_inputs("cpu", kind))
    for sample in every[:: max(1, len(every) // SAMPLES)]:
        theirs, mine, tensors = called(op, sample, LAYOUTS[layout])
        for a, b in zip(results(theirs), results(mine)):
            expected = shared(a, [x for x, _ in tensors])
            got = shared(b, [y for _, y in tensors])
            if got != expected:
                found.append(f"{layout}: shares arguments {got}, PyTorch's {expected}: {sample}")
    return found


@pytest.mark.parametrize(
    "op", [pytest.param(op, id=identity(op), marks=share(identity(op), 4)) for op in OPERATORS
           if op.name not in WRITING + GROWING])  # fmt: skip
def test_results_share_what_they_share_in_pytorch(op: Any) -> None:
    torch.manual_seed(0)
    assert not (found := [d for layout in LAYOUTS for d in differences(op, layout)]), found[:3]
