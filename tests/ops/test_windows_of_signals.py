"""`signal.windows`: values, symmetry, what is refused; captured calls."""

import pytest

import tracejit
from tracejit.signal import windows

OPTIONS = {"general_cosine": {"a": [0.5, 0.3, 0.2]}, "kaiser": {"beta": 3.0}}
NAMES = ("bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine",
         "general_hamming", "hamming", "hann", "kaiser", "nuttall")  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_symmetric_window_reads_the_same_backward(name):
    window, options = getattr(windows, name), OPTIONS.get(name, {})
    whole = window(7, **options)
    assert whole.dtype is tracejit.float32 and tracejit.allclose(whole, whole.flip(0))
    assert window(0, **options).shape == (0,) and window(1, **options).tolist() == [1.0]
    assert tracejit.allclose(window(6, sym=False, **options), whole[:-1], atol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_refused(name):
    window, options = getattr(windows, name), OPTIONS.get(name, {})
    with pytest.raises(ValueError, match="non-negative window length"):
        window(-1, **options)
    with pytest.raises(ValueError, match="expects float32 or float64"):
        window(3, dtype=tracejit.int64, **options)
    with pytest.raises(TypeError, match="unexpected keyword argument 'size'"):
        window(3, size=1, **options)


def test_captured():
    def framed(x):
        return x * windows.hann(x.shape[0], sym=False)

    x = tracejit.ones(8)
    assert tracejit.equal(framed(x), tracejit.script(framed, mode="graph")(x))


@pytest.mark.oracle
@pytest.mark.parametrize("name", NAMES)
def test_values_are_pytorchs(name):
    torch = pytest.importorskip("torch")
    options = OPTIONS.get(name, {})
    found = getattr(windows, name)(9, dtype=tracejit.float64, **options)
    expected = getattr(torch.signal.windows, name)(9, dtype=torch.float64, **options)
    assert found.tolist() == pytest.approx(expected.tolist(), abs=1e-12)
