"""Sequences of tensors, NumPy's numbers and Python's, as PyTorch makes tensors of them; and what
DLPack refuses."""

import numpy as np
import pytest

import tracejit

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle


def needing(lib):
    return lib.tensor(2.5, requires_grad=True)


CASES = [
    lambda lib: lib.tensor([0, needing(lib)]),
    lambda lib: lib.tensor([needing(lib), 0]),
    lambda lib: lib.as_tensor([[0, needing(lib)], [needing(lib) * 2, 3]]),
    lambda lib: lib.tensor([lib.tensor(2), 2.5]),
    lambda lib: lib.tensor([0, lib.tensor(2, dtype=lib.float64)]),
    lambda lib: lib.tensor([True, lib.tensor(2, dtype=lib.int32)]),
    lambda lib: lib.tensor([lib.tensor(2.0, dtype=lib.float16), 1.0]),
    lambda lib: lib.tensor([0, lib.tensor(2 + 1j)]),
    lambda lib: lib.tensor([lib.tensor([1.0]), lib.tensor([2.0])]),
    lambda lib: lib.tensor([[lib.tensor([1.0])], [2]]),
    lambda lib: lib.Tensor([lib.tensor([[1.0]]), 2]),
    lambda lib: lib.tensor([lib.tensor([1, 2]), lib.tensor([1, 2])]),
    lambda lib: lib.tensor([lib.tensor([]), 2]),
    lambda lib: lib.tensor([0, needing(lib)], dtype=lib.int64),
    lambda lib: lib.tensor([0, lib.tensor(2**60 + 1)], dtype=lib.int64),
    lambda lib: lib.tensor([0, np.float64(2)]),
    lambda lib: lib.tensor([np.float32(2), 1]),
    lambda lib: lib.tensor([1, np.float16(1)]),
    lambda lib: lib.tensor([lib.tensor(1), np.ones(())]),
    lambda lib: lib.tensor([[1, 2], np.ones(2)]),
]


@pytest.mark.parametrize("number", range(len(CASES)))
def test_tensors_of_mixed_sequences(number):
    seen = []
    for lib in (tracejit, torch):
        try:
            made = CASES[number](lib)
            seen.append((made.tolist(), str(made.dtype).split(".")[1], made.requires_grad))
        except Exception as error:
            seen.append((type(error), str(error)))
    assert seen[0] == seen[1]


def test_outputs_that_are_chosen_by_whether_they_need_gradients_are_checked():
    def chosen(x):
        return tuple(y for y in (x * 2, x.detach(), x * x) if y.requires_grad)

    x = tracejit.tensor([1.0, 2.0], dtype=tracejit.float64, requires_grad=True)
    assert tracejit.autograd.gradcheck(chosen, (x,))


def test_a_stream_of_dlpack_is_a_number():
    for lib in (tracejit, torch):
        with pytest.raises(TypeError, match="stream must be ``int`` or ``none``"):
            lib.ones(2).__dlpack__(stream=object())
