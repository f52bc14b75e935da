"""`dtype=bool`: Python's types of numbers as element types, as in PyTorch."""

import pytest

import tracejit

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle

EXPRESSIONS = """
m.ones(2, dtype=bool)
m.zeros(2, dtype=float)
m.full((2,), 1, dtype=int)
m.empty(2, dtype=complex)
m.eye(2, dtype=bool)
m.arange(3, dtype=float)
m.linspace(0, 1, 3, dtype=float)
m.linspace(0, 3, 4, dtype=int)
m.logspace(0, 1, 3, dtype=float)
m.tensor([1, 2], dtype=float)
m.as_tensor([1, 0], dtype=bool)
m.asarray([1, 0], dtype=bool)
m.scalar_tensor(1, dtype=int)
m.frombuffer(bytearray(8), dtype=int)
m.rand(2, dtype=float)
m.randint(0, 3, (2,), dtype=int)
m.randperm(3, dtype=float)
m.tril_indices(2, 2, dtype=int)
m.hann_window(3, dtype=float)
m.fft.fftfreq(3, dtype=float)
m.zeros_like(x, dtype=bool)
m.randn_like(x, dtype=float)
x.new_full((2,), 1, dtype=bool)
x.new_tensor([1], dtype=int)
x.to(bool)
x.to(dtype=int)
x.to("cpu", float)
x.type(bool)
x.double().view(int)
x.sum(0, dtype=float)
x.mean(dtype=float)
x.cumsum(0, dtype=float)
m.softmax(x, 0, dtype=float)
m.nn.functional.log_softmax(x, 0, dtype=float)
m.linalg.norm(x, dtype=float)
m.promote_types(float, int)
m.can_cast(float, int)
m.finfo(float).bits
m.iinfo(int).bits
m.nn.Linear(2, 2, dtype=float).weight
m.nn.Linear(2, 2).to(float).weight
m.nn.Linear(2, 2).to(int).weight
m.nn.Linear(2, 2).type(float).weight
""".strip().splitlines()


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_they_are_the_types_that_pytorch_takes_them_for(expression):
    def found(library):
        x = library.tensor([[1.0, 2.0], [0.0, 4.0]])
        try:
            value = eval(expression, {"m": library, "x": x})
        except (TypeError, ValueError) as error:
            return f"{type(error).__name__} {error}".replace("tracejit.", "torch.")
        kind = value.dtype if isinstance(value, library.Tensor) else value
        return str(kind).replace("tracejit.", "torch.")

    assert found(tracejit) == found(torch)


@pytest.mark.parametrize("kind", [str, "float32", list, [1], tracejit.Tensor])
@pytest.mark.parametrize("make", [
    lambda kind: tracejit.ones(2, dtype=kind), lambda kind: tracejit.tensor([1], dtype=kind),
    lambda kind: tracejit.ones(2).sum(dtype=kind), lambda kind: tracejit.ones(2).to(dtype=kind),
])  # fmt: skip
def test_others_are_refused(make, kind):
    with pytest.raises(TypeError, match="argument 'dtype' must be tracejit.dtype, not"):
        make(kind)


def test_captured_functions_take_them():
    def body(x):
        mask = tracejit.ones(x.shape[0], dtype=bool).tril() if x.dim() > 1 else x.to(bool)
        return x.sum(dtype=float), mask, x.new_zeros(2, dtype=int)

    captured = tracejit.script(body)
    for n in (2, 3):
        x = tracejit.arange(float(n))
        for ours, plain in zip(captured(x), body(x)):
            assert ours.dtype is plain.dtype and tracejit.equal(ours, plain)
