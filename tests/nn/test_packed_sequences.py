"""Padded and packed sequences are PyTorch's."""

import numpy as np
import pytest

import tracejit
from tracejit.nn.utils import rnn

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle
PADDED = np.arange(24.0).reshape(4, 3, 2)
SEQUENCES = [np.arange(3.0), np.arange(2.0), np.arange(4.0)]
SORTED = sorted(SEQUENCES, key=len, reverse=True)


def calls(library):
    """name -> call, on the tensors of a library."""
    r = library.nn.utils.rnn
    x = library.tensor(PADDED)
    unordered = [library.tensor(s) for s in SEQUENCES]
    ordered = [library.tensor(s) for s in SORTED]
    back = library.tensor([1, 0])

    def packed(lengths, **options):
        return r.pack_padded_sequence(x, lengths, **options)

    def any_order():
        return packed([2, 4, 1], enforce_sorted=False)

    def by_hand(*indices):
        return r.PackedSequence(library.ones(3), library.tensor([2, 1]), *indices)

    return {
        "pack": lambda: packed([4, 2, 1]),
        "pack tuple": lambda: packed((4, 2, 2)),
        "pack short": lambda: packed([3, 2, 1]),
        "pack tensor": lambda: packed(library.tensor([4, 2, 1], dtype=library.int32)),
        "pack batch first": lambda: packed([3, 2, 1, 1], batch_first=True),
        "pack any order": any_order,
        "pack any order batch first": lambda: packed(
            [1, 3, 3, 2], batch_first=True, enforce_sorted=False),
        "pad": lambda: r.pad_packed_sequence(packed([4, 2, 1])),
        "pad any order": lambda: r.pad_packed_sequence(any_order()),
        "pad with": lambda: r.pad_packed_sequence(any_order(), True, -1.0, 6),
        "pad batch first": lambda: r.pad_packed_sequence(any_order(), True)[0].stride(),
        "pad batch first in order": lambda: (
            r.pad_packed_sequence(packed([4, 2, 1]), True)[0].stride()),
        "unpack": lambda: r.unpack_sequence(any_order()),
        "pack sequence": lambda: r.pack_sequence(ordered),
        "pack sequence any order": lambda: r.pack_sequence(unordered, enforce_sorted=False),
        "pad sequence": lambda: r.pad_sequence(unordered),
        "pad sequence left": lambda: r.pad_sequence(tuple(unordered), True, 9.0, "left"),
        "pad rows": lambda: r.pad_sequence(library.tensor(PADDED)),
        "unpad": lambda: r.unpad_sequence(r.pad_sequence(unordered), library.tensor([3, 2, 4])),
        "unpad batch first": lambda: r.unpad_sequence(
            r.pad_sequence(unordered, True), library.tensor([3, 2, 4]), True),
        "by hand": lambda: by_hand(back), "by hand, no order": by_hand,
        "of a pair": lambda: r.PackedSequence((library.ones(3), library.tensor([2, 1]))),
        "inverted": lambda: r.invert_permutation(library.tensor([2, 0, 1])),
        "no permutation": lambda: r.invert_permutation(None),
        "to": lambda: by_hand(back).to(library.float64), "to itself": lambda: by_hand().float(),
        "is_cuda": lambda: by_hand().is_cuda,
        **{kind: lambda kind=kind: getattr(any_order(), kind)()
           for kind in ("double", "float", "half", "long", "int", "short", "char", "byte", "cpu")},
        # errors
        "error: order": lambda: packed([2, 4, 1]), "error: zero": lambda: packed([4, 2, 0]),
        "error: count": lambda: packed([4, 2]),
        "error: count batch first": lambda: packed([4, 2, 1], batch_first=True),
        "error: empty": lambda: r.pack_padded_sequence(x[:, :0], []),
        "error: two dimensions": lambda: packed(library.tensor([[4, 2, 1]])),
        "error: total length": lambda: r.pad_packed_sequence(any_order(), total_length=2),
        "error: order of sequences": lambda: r.pack_sequence(unordered),
        "error: no sequences": lambda: r.pad_sequence([]),
        "error: none to pack": lambda: r.pack_sequence([]),
        "error: side": lambda: r.pad_sequence(ordered, padding_side="up"),
        "error: number": lambda: r.pad_sequence(3),
        "error: no sizes": lambda: r.PackedSequence(library.ones(3)),
    }  # fmt: skip


def flat(result):
    """Names of types, dtypes and values, of whichever library."""
    if isinstance(result, (list, tuple)):
        return [type(result).__name__, *(flat(x) for x in result)]
    if hasattr(result, "dtype"):
        return str(result.dtype).partition(".")[2], result.tolist()
    return result


def outcome(call):
    try:
        return flat(call())
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize("name", calls(tracejit))
def test_calls_are_pytorchs(name):
    expected = outcome(calls(torch)[name])
    assert outcome(calls(tracejit)[name]) == expected
    failed = isinstance(expected, tuple) and isinstance(expected[0], type)
    assert failed == name.startswith("error")


def test_gradients_go_through():
    found = []
    for library in (tracejit, torch):
        x = library.tensor(PADDED, requires_grad=True)
        r = library.nn.utils.rnn
        packed = r.pack_padded_sequence(x, [2, 4, 1], enforce_sorted=False)
        padded, _ = r.pad_packed_sequence(packed._replace(data=packed.data**2))
        (padded * padded.sum()).sum().backward()
        found.append(x.grad.tolist())
    assert found[0] == found[1]


def test_too_long_a_length_is_an_error():
    with pytest.raises(RuntimeError, match="Expected lengths of at most 4, but got 5"):
        rnn.pack_padded_sequence(tracejit.tensor(PADDED), [5, 2, 1])


def test_printed_as_a_tuple():
    packed = rnn.pack_sequence([tracejit.ones(2), tracejit.ones(1)])
    assert repr(packed).startswith("PackedSequence(data=tensor([1., 1., 1.]), batch_sizes=")
