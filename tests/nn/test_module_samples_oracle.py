"""PyTorch's own samples of its modules: results, state, text and gradients agree, also captured.

In: `module_db`, the calls PyTorch tests its modules with, in training and in evaluation.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tracejit
from tests.shares import share

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest", reason="PyTorch's samples need it")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from torch.testing._internal.common_modules import module_db

    from tests.oracle.test_operator_samples import array, converted, flat, unequal, weight

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]

MOST = 6  # samples of a module in each mode
# Stacks of copies of a layer that is given: tests/nn/test_transformer.py has them.
GIVEN_LAYERS = ("TransformerEncoder", "TransformerDecoder")
MODULES = [info for info in module_db if not info.module_cls.__name__.startswith("Lazy")
           and info.module_cls.__name__ not in GIVEN_LAYERS]  # fmt: skip
# Of the modules one in so many in quick runs.
SHARES = {"eager": 2, "graph": 5, "compiled": 10}


def samples(info: Any, training: bool) -> Iterator[Any]:
    torch.manual_seed(1)
    given = [s for s in info.module_inputs_func(info, device="cpu", dtype=torch.float64,
                                                requires_grad=True, training=training)
             if s.forward_input is not None]  # fmt: skip
    return iter(given[::-(-len(given) // MOST)])


def ours(x: Any, leaves: list) -> Any:
    """An argument with tracejit's tensors and functions; (theirs, ours) that require grad."""
    if isinstance(x, dict):
        return {k: ours(v, leaves) for k, v in x.items()}
    if callable(x) and getattr(torch.nn.functional, getattr(x, "__name__", ""), None) is x:
        return getattr(tracejit.nn.functional, x.__name__)
    if isinstance(x, torch.nn.Module):
        return getattr(tracejit.nn, type(x).__name__)()
    return converted(x, leaves)


def is_random(name: str, training: bool) -> bool:
    return "Fractional" in name or training and (
        "Dropout" in name or name in ("RReLU", "Transformer") or name.startswith("Transformer"))


def difference(info: Any, sample: Any, training: bool, mode: str) -> str | None:
    name, given = info.module_cls.__name__, sample.constructor_input
    torch.manual_seed(0)
    theirs = copy.deepcopy(info.module_cls(*given.args, **given.kwargs)).train(training).double()
    made = getattr(tracejit.nn, name)(*ours(list(given.args), []), **ours(given.kwargs, []))
    made.train(training).double()
    if repr(made) != repr(theirs) or list(made.state_dict()) != list(theirs.state_dict()):
        return f"{made} for {theirs}, or other names in its state"
    made.load_state_dict({k: ours(v, []) for k, v in theirs.state_dict().items()})
    leaves: list = []
    arguments = [ours(x, leaves) for x in sample.forward_input.args]
    named = ours(sample.forward_input.kwargs, leaves)
    want = [x for x in flat(theirs(*sample.forward_input.args, **sample.forward_input.kwargs))
            if x is not None]
    call = made if mode == "eager" else tracejit.script(made, mode=mode)
    got = [x for x in flat(call(*arguments, **named)) if x is not None]
    shapes = [[(tuple(x.shape), str(x.dtype).split(".")[1], x.requires_grad) for x in xs]
              for xs in (got, want)]
    if shapes[0] != shapes[1]:
        return f"{shapes[0]}, expected {shapes[1]}"
    if is_random(name, training):
        return None
    compared = [*zip(got, want), *zip(made.buffers(), theirs.buffers())]
    differentiable = [(g, w) for g, w in zip(got, want) if w.requires_grad]
    if differentiable:
        leaves += zip(theirs.parameters(), made.parameters())
        weights = [weight(w).astype(np.float64) for _, w in differentiable]
        wanted = torch.autograd.grad([w for _, w in differentiable], [x for x, _ in leaves],
                                     [*map(torch.from_numpy, weights)], allow_unused=True)
        grads = tracejit.autograd.grad([g for g, _ in differentiable], [x for _, x in leaves],
                                       [*map(tracejit.from_numpy, weights)], allow_unused=True)
        if [g is None for g in grads] != [w is None for w in wanted]:
            return "other arguments without a gradient"
        compared += [(g, w) for g, w in zip(grads, wanted) if w is not None]
    found = (unequal(np.asarray(array(g)), np.asarray(array(w)), 1e-9) for g, w in compared)
    return next((wrong for wrong in found if wrong), None)


@pytest.mark.parametrize(("info", "mode"), [
    pytest.param(info, mode, id=f"{info.name}-{mode}",
                 marks=share(f"{info.name}-{mode}", SHARES[mode]))
    for info in MODULES for mode in SHARES
])  # fmt: skip
def test_samples_agree_with_pytorch(info: Any, mode: str) -> None:
    wrong = []
    for training in (True, False) if info.train_and_eval_differ else (True,):
        for sample in samples(info, training):
            different = difference(info, sample, training, mode)
            if different:
                wrong.append(f"{sample.desc} (training={training}): {different}")
    assert not wrong, "\n".join(wrong)


def test_every_module_is_there() -> None:
    assert len(MODULES) > 90
    assert not [m.name for m in MODULES if not hasattr(tracejit.nn, m.module_cls.__name__)]
