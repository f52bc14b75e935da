"""PyTorch's own wrong calls of its operators: what it refuses is refused here, by an exception of
the same type.

In: `error_inputs` of `op_db`. What differs by design is in one table, `ALLOWED`.
"""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from tests.shares import share

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest", reason="PyTorch's samples need it")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from tests.oracle.test_operator_samples import OPERATORS, brief, converted, identity, ours

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]

KINDS = (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError, OverflowError)
SHARED = "a result is computed before it is stored: what it shares with the arguments does no harm"
ALLOWED = {
    **dict.fromkeys(("bernoulli", "cat", "gather", "index_select", "kthvalue", "masked_select",
                     "take"), SHARED),
    **dict.fromkeys(("__radd__", "__rand__", "__rmul__", "__ror__", "__rxor__"),
                    "a number may come first"),
    "arange": "a step that `out` rounds to 0 is a RuntimeError, as a step of 0 is",
    "narrow_copy": "a dimension out of range is an IndexError, as it is for narrow",
}  # fmt: skip


def accepted(op: Any) -> list[str]:
    """The wrong calls that are not refused, or by another type of exception."""
    function, wrong = ours(op), []
    assert function is not None
    for bad in op.error_inputs("cpu"):
        sample = bad.sample_input
        try:
            op(sample.input, *sample.args, **sample.kwargs)
            continue
        except Exception as error:
            expected = next((kind for kind in KINDS if type(error) is kind), RuntimeError)
        try:
            args = [converted(x, []) for x in (sample.input, *sample.args)]
            kwargs = {k: converted(v, []) for k, v in sample.kwargs.items()}
        except (NotImplementedError, ValueError):  # on the meta device, of 65 dimensions
            continue
        try:
            function(*args, **kwargs)
        except expected:
            continue
        except Exception as error:
            wrong.append(f"{brief(sample)}: {type(error).__name__}: {error}")
        else:
            wrong.append(f"{brief(sample)}: accepted")
    return wrong


REFUSING = [op for op in OPERATORS if op.error_inputs_func is not None]


@pytest.mark.parametrize(
    "op", [pytest.param(op, id=identity(op), marks=share(identity(op), 8)) for op in REFUSING])
def test_what_pytorch_refuses_is_refused(op: Any) -> None:
    wrong = accepted(op)
    if identity(op) in ALLOWED:
        assert wrong, f"agrees: take it from ALLOWED ({ALLOWED[identity(op)]})"
    else:
        assert not wrong, "\n".join(wrong[:5])
