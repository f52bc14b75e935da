"""What padding refuses, and with which words, is what PyTorch refuses."""

import pytest

import tracejit

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle
MODES = ("reflect", "replicate", "circular")

# shape, dtype, amounts, options
CALLS = [
    *(((4,) * ndim, "float32", (1,) * (2 * n), {"mode": mode})
      for mode in MODES for n in (1, 2, 3) for ndim in range(n, n + 4)),
    *(((2, 3, *(4,) * n), "float32", (amount,) * (2 * n), {"mode": mode})
      for mode in MODES for n in (1, 2, 3) for amount in (-2, -1, 4, 5)),
    *((shape, dtype, (1,) * (2 * n), {"mode": mode})
      for mode in MODES for n in (1, 2, 3)
      for shape, dtype in (((0, 3, *(4,) * n), "float32"), ((2, 0, *(4,) * n), "float32"),
                           ((2, 3, *(0,) * n), "float32"), ((2, 3, *(4,) * n), "bool"),
                           ((2, 3, *(4,) * n), "int64"))),
    *(((2, 3, 4), "float32", (1, 1), {"mode": mode, "value": value})
      for mode in (*MODES, "other") for value in (0.0, 1.0)),
    ((2, 3, 4), "float32", (-3, -2), {"mode": "circular"}),
    ((2, 3, 4, 4), "float32", (1, 1, 5, 5), {"mode": "reflect"}),
    ((2, 3, 4), "float32", (1, 1, 1), {}),
    ((4,), "float32", (1, 1, 1, 1), {}),
    *((shape, "float32", amounts, {})
      for amounts in ((-3, 1), (1, -3), (-5, 4), (4, -5), (-2, -1), (-1, -1))
      for shape in ((2,), (3, 2))),
    ((3, 2), "float32", (0, 0, -4, 2), {}),
    *(((1, 1, 2, 3), "float32", (-1,) * 6, {"mode": mode}) for mode in ("reflect", "replicate")),
]  # fmt: skip


def outcome(call):
    try:
        return tuple(call().shape)
    except Exception as error:
        return type(error), str(error).partition("\nException raised")[0]


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_what_pad_refuses(call):
    shape, dtype, amounts, options = call
    ours, theirs = (
        outcome(lambda library=library: library.nn.functional.pad(
            library.zeros(shape).to(getattr(library, dtype)), amounts, **options))
        for library in (tracejit, torch))  # fmt: skip
    assert ours == theirs


@pytest.mark.parametrize("kind", ["Zero", "Reflection", "Replication", "Circular"])
@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("longer", [None, -1, 0, 2])
def test_what_layers_refuse(kind, n, longer):
    def shape(library, ndim):
        padding = 1 if longer is None else (1,) * (2 * n + longer)
        layer = getattr(library.nn, f"{kind}Pad{n}d")(padding)
        return outcome(lambda: layer(library.zeros((4,) * ndim)))

    for ndim in range(n, n + 4):
        assert shape(tracejit, ndim) == shape(torch, ndim), ndim


@pytest.mark.parametrize("mode", ["constant", *MODES])
@pytest.mark.parametrize("run", [lambda f: f, tracejit.script])
def test_nothing_to_pad_is_a_copy(mode, run):
    x = tracejit.zeros(1, 2, 3)
    run(lambda x: tracejit.nn.functional.pad(x, (0, 0), mode=mode))(x).fill_(1.0)
    assert x.sum().item() == 0.0
