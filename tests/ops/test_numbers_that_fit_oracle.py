"""Numbers at the edge of a dtype: fractions that no integer dtype has, shifts by more bits than
there are, neighbours of equal numbers; eager and captured.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tracejit

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]


def set_item(t: Any, x: Any, v: float) -> Any:
    x = x.clone()
    x[0] = v
    return x


def set_at(t: Any, x: Any, v: float) -> Any:
    x = x.clone()
    x[t.tensor([0])] = v
    return x


WRITERS: dict[str, Callable[..., Any]] = {
    "fill_": lambda t, x, v: x.clone().fill_(v),
    "full": lambda t, x, v: t.full((2,), v, dtype=x.dtype),
    "full_like": lambda t, x, v: t.full_like(x, v),
    "new_full": lambda t, x, v: x.new_full((2,), v),
    "masked_fill": lambda t, x, v: x.masked_fill(x == 1, v),
    "index_fill": lambda t, x, v: x.index_fill(0, t.tensor([0]), v),
    "scatter": lambda t, x, v: x.scatter(0, t.tensor([0]), v),
    "pad": lambda t, x, v: t.nn.functional.pad(x, (1, 0), value=v),
    "set_item": set_item,
    "set_at": set_at,
}
VALUES = (2.7, 127.9, 255.5, -0.5, -8.5, 300.0, 1e19, float("nan"), float("inf"), -1, 7.0)


def told(call: Callable[..., Any], *args: Any) -> Any:
    try:
        return call(*args).tolist()
    except RuntimeError as error:
        return str(error)


def modes(function: Callable[..., Any]) -> list[Callable[..., Any]]:
    return [function, tracejit.script(function, mode="graph")]


@pytest.mark.parametrize("name", WRITERS)
def test_numbers_that_a_dtype_has_not_are_refused(name: str) -> None:
    torch = pytest.importorskip("torch")
    write = WRITERS[name]
    runs = modes(lambda x, v: write(tracejit, x, v))
    for kind, values in {"uint8": VALUES, "int8": VALUES[:4], "int64": VALUES[-5:]}.items():
        theirs, mine = (t.tensor([1, 2], dtype=getattr(t, kind)) for t in (torch, tracejit))
        for run in runs if kind == "uint8" else runs[:1]:
            for v in values if run is runs[0] else values[::3]:
                assert told(run, mine, v) == told(write, torch, theirs, v), v


@pytest.mark.parametrize("kind", ["uint8", "int8", "int32", "int64"])
def test_shifts_by_more_bits_than_there_are(kind: str) -> None:
    torch = pytest.importorskip("torch")

    def shifts(t: Any, x: Any, n: int) -> list:
        count = t.tensor(n)
        many = t.tensor([n, 1, 2], dtype=x.dtype) if n >= 0 else count
        return [x >> n, x >> count, x << n, x << count, x >> many, x << many]

    def given(t: Any) -> Any:
        return t.tensor([1, 100, 200 if kind == "uint8" else -56], dtype=getattr(t, kind))

    for n in (3, 8, 100, -1):
        wanted = [y.tolist() for y in shifts(torch, given(torch), n)]
        for run in modes(lambda x, n=n: shifts(tracejit, x, n)):
            assert [y.tolist() for y in run(given(tracejit))] == wanted


def test_a_number_is_no_function_of_one_that_is_its_own_neighbour() -> None:
    torch = pytest.importorskip("torch")

    def gradients(t: Any) -> list:
        a, b = (t.tensor(v, requires_grad=True) for v in ([1.0, 2.0, 3.0], [1.0, 3.0, 2.0]))
        t.nextafter(a, b).sum().backward()
        return [a.grad.tolist(), b.grad.tolist()]

    assert gradients(tracejit) == gradients(torch)
