"""Results that look at a part of other memory: their layout is found once for each size."""

from __future__ import annotations

import pytest

import tracejit as tj


def _parts(x):
    y = x * 2
    column = y[:, 1].detach()
    turned = y.t()[1:].detach()
    return y, column, turned, y.detach().view(-1)[3:7].unflatten(0, (2, 2)).detach()


def _whole(x):
    return (x + 1).detach()[1:, ::2].detach(), x.detach()[1].detach()


@pytest.mark.parametrize("function", [_parts, _whole])
@pytest.mark.parametrize("capture", [tj.script, tj.script(dynamic=True), tj.trace])
def test_they_are_those_of_the_plain_call(function, capture):
    captured = capture(function)
    for shape in [(3, 4), (3, 4), (5, 4), (3, 4), (4, 9), (5, 4), (4, 9), (3, 4)]:
        for way in (lambda x: x, lambda x: x.t().contiguous().t()):
            x = way(tj.arange(float(shape[0] * shape[1])).view(shape))
            for found, plain in zip(captured(x), function(x), strict=True):
                assert found.tolist() == plain.tolist() and found.shape == plain.shape
                assert found.stride() == plain.stride()
                assert found.storage_offset() == plain.storage_offset()
                assert not found._is_view() and found.dtype is plain.dtype


def test_they_share_memory_and_no_later_call_changes_them():
    captured = tj.script(_parts)
    kept = [captured(tj.full((3, 4), float(k))) for k in range(4)]
    for k, (y, column, turned, square) in enumerate(kept):
        assert {one.untyped_storage().data_ptr() for one in (column, turned, square)} == {
            y.untyped_storage().data_ptr()}
        y[:, 1] = 50.0 + k
        assert column.tolist() == [50.0 + k] * 3 == turned[0].tolist()
    assert [y[0, 0].item() for y, *_ in kept] == [0.0, 2.0, 4.0, 6.0]


def test_their_dtype_and_inference_mode():
    captured = tj.script(lambda x: (x * 2).detach().view(tj.int32)[1:].detach())
    for _ in range(3):
        found = captured(tj.ones(3))
        assert found.dtype is tj.int32 and found.tolist() == [2**30] * 2
        with tj.inference_mode():
            assert captured(tj.ones(3)).is_inference()
        assert not captured(tj.ones(3)).is_inference()
