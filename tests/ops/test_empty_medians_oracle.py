"""The median of no elements, of every dtype, is PyTorch's."""

import pytest

import tracejit

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle
DTYPES = "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64".split()


@pytest.mark.parametrize("shape", [(0,), (2, 0)])
@pytest.mark.parametrize("name", ["median", "nanmedian"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_median_of_nothing(dtype, name, shape):
    def called(lib):
        return getattr(lib, name)(lib.empty(shape, dtype=getattr(lib, dtype)))

    expected = called(torch)
    for ours in (called(tracejit), tracejit.script(lambda: called(tracejit))()):
        assert ours.dtype is getattr(tracejit, dtype)
        assert str(ours.item()) == str(expected.item())


@pytest.mark.parametrize("dtype", ["bool", "complex64"])
def test_what_has_no_order_is_refused_where_there_are_elements(dtype):
    for lib in (torch, tracejit):
        with pytest.raises(NotImplementedError if lib is tracejit else RuntimeError) as refused:
            lib.median(lib.zeros(2, dtype=getattr(lib, dtype)))
        assert '"median_cpu" not implemented for' in str(refused.value)
