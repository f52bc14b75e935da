"""Groups that are merged while their operands are placed."""

import tracejit as tj


def test_readers_may_be_merged_before_a_value_is_stored():
    def f(x, index, y):
        v = tj.clamp(tj.nan_to_num(tj.atan(x)), -100, 100).to(tj.int32)
        w = tj.scatter_add(v, 0, index, v)
        (y * y).sum().backward()
        return v.shape[0] - v, tj.gt(v, w).to(tj.uint8)

    def run(g):
        x, y = tj.tensor([2.0]).expand(5), tj.tensor(2.0, dtype=tj.bfloat16).requires_grad_() * 1
        return [r.tolist() for r in g(x, tj.tensor([0, 1, 2, 3, 3]), y)]

    assert run(tj.script(f)) == run(f)


def test_narrow_integers_wrap_sizes():
    def f(x):
        return x + x.shape[0], x.shape[0] - x, x.clone().sub_(x.shape[0])

    for dtype in (tj.int8, tj.uint8, tj.int16):
        for mode in ("graph", "compiled", "python"):
            g = tj.script(f, mode=mode)
            for n in (5, 306, 40000):
                x = tj.ones(n, dtype=dtype)
                assert [r[0].item() for r in g(x)] == [r[0].item() for r in f(x)]
