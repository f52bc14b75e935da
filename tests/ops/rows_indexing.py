"""Rows of indexing, gather, scatter, embedding and ops whose size depends on values."""

from __future__ import annotations

import numpy as np

from tests.opinfo import ANY, FLOATS, INTEGERS, NUMERIC, OpInfo, Sample, array
from tracejit.core.ops import embedding


def row(name, function, samples, **options):
    return OpInfo(
        name, samples, function=function, **{"dtypes": ANY, "ulp": 0, "exact": True, **options}
    )


def on(*shapes):
    return lambda rng, d: [Sample((array(rng, d, *shape),)) for shape in shapes]


def with_indices(*calls):
    """Samples (array of a shape, then index arrays given as nested lists)."""
    return lambda rng, d: [
        Sample((array(rng, d, *shape), *(np.array(i, np.int64) for i in lists)))
        for shape, *lists in calls
    ]


def doubled_at(x, i):
    y = x * 1
    y[:, i].mul_(2)
    return y


def with_source(*calls):
    """Samples (array, index, source array of a shape)."""
    return lambda rng, d: [
        Sample((array(rng, d, *shape), np.array(index, np.int64), array(rng, d, *source)))
        for shape, index, source in calls
    ]


def with_mask(*shapes):
    return lambda rng, d: [
        Sample((array(rng, d, *shape), rng.random(mask) < 0.5)) for shape, mask in shapes
    ]


def key(name, take, *shapes, **options):
    """A row of `x[...]`, read and, through `take`, of what PyTorch reads."""
    return row(f"getitem.{name}", take, on(*shapes), **options)


def writing(write):
    """A function of (x, ...) that writes into a copy of x and returns it."""

    def call(x, *rest):
        whole = x.clone()
        write(whole, *rest)
        return whole

    return call


def put(key_of):
    def write(x, *rest):
        x[key_of(*rest[:-1]) if callable(key_of) else key_of] = rest[-1]

    return writing(write)


def values(shape, source):
    return lambda rng, d: [Sample((array(rng, d, *shape), array(rng, d, *source)))]


def torch_embedding(indices, weight, padding_idx=None, **options):
    import torch

    return torch.nn.functional.embedding(indices, weight, padding_idx, **options)


def torch_one_hot(x, n=-1):
    import torch

    return torch.nn.functional.one_hot(x, n)


ADDED = {"dtypes": (*FLOATS, *INTEGERS), "ulp": 4, "cancel": 4, "exact": False}

ROWS = [
    key("int", lambda x: x[1], (3, 4), (2,)),
    key("negative", lambda x: x[-1, -2], (3, 4), (2, 3, 2)),
    key("slice", lambda x: x[1:], (3, 4), (1, 2), (5,)),
    key("slices", lambda x: x[:-1, 1:3], (3, 4), (2, 5)),
    key("step", lambda x: x[::2, 1::3], (3, 4), (5, 2)),
    key("clamped", lambda x: x[-10:10, 5:2], (3, 4)),
    key("ellipsis", lambda x: x[..., 0], (3, 4), (2, 3, 2)),
    key("whole", lambda x: x[...], (3, 4), ()),
    key("colon", lambda x: x[:], (3, 4)),
    key("none", lambda x: x[None, :, None], (3, 4), (2,)),
    key("mixed", lambda x: x[..., None, 1:, -1], (3, 4), (2, 3, 2)),
    key("list", lambda x: x[[0, 2, 0]], (3, 4), (3,)),
    key("array", lambda x: x[:, np.array([2, 0])], (3, 4), (2, 3, 2)),
    key("bool", lambda x: x[True], (3,), dtypes=FLOATS),
    row(
        "getitem.tensor",
        lambda x, i: x[i],
        with_indices(((3, 4), [0, 2, -1]), ((3,), [[0, 1], [2, 2]]), ((3, 2), []), ((3, 2), 1)),
    ),
    row(
        "getitem.second",
        lambda x, i: x[:, i],
        with_indices(((3, 4), [0, 2, -1]), ((2, 3, 2), [[0, 1]])),
    ),
    row(
        "getitem.two",
        lambda x, i, j: x[i, j],
        with_indices(((3, 4), [0, 2], [1, -1]), ((3, 4, 2), [[0], [1]], [[1, 2, 3]])),
    ),
    row(
        "getitem.apart",
        lambda x, i, j: x[i, :, j],
        with_indices(((3, 4, 2), [0, 2, 1], [1, -1, 0])),
    ),
    row(
        "getitem.after",
        lambda x, i, j: x[:, i, j],
        with_indices(((2, 3, 4), [0, 2, 1], [1, -1, 0])),
    ),
    row("getitem.at", lambda x, i: x[:, i] * 2, with_indices(((2, 3, 4), 1), ((2, 3), -1))),
    row("getitem.at_written", doubled_at, with_indices(((2, 3, 4), 1), ((2, 3), -1))),
    row("getitem.select", lambda x, i: x[:, 0, i], with_indices(((2, 3, 4), [0, 2, 1]))),
    row("getitem.newaxis", lambda x, i: x[None, i, 1:], with_indices(((3, 4), [0, 2]))),
    row(
        "getitem.mask",
        lambda x, m: x[m],
        with_mask(((3, 4), (3, 4)), ((3, 4), (3,)), ((0, 2), (0,))),
    ),
    row("getitem.mask.second", lambda x, m: x[:, m], with_mask(((3, 4), (4,)))),
    row("setitem.slice", put(slice(1, None)), values((3, 4), (4,))),
    row("setitem.int", put((0, -1)), values((3, 4), ())),
    row("setitem.step", put((slice(None), slice(0, None, 2))), values((3, 4), (3, 1))),
    row("setitem.number", writing(lambda x: x.__setitem__((slice(None), 1), 3)), on((3, 4))),
    row("setitem.leading", put(slice(0, 2)), values((3, 4), (1, 1, 2, 4))),
    row(
        "setitem.tensor",
        put(lambda i: i),
        with_source(((3, 4), [0, 2], (4,)), ((3,), [1, -1], (2,))),
    ),
    row("setitem.second", put(lambda i: (slice(None), i)), with_source(((3, 4), [3, 0], (3, 2)))),
    row(
        "setitem.number.tensor",
        writing(lambda x, i: x.__setitem__(i, 5)),
        with_indices(((3, 4), [0, 2])),
    ),
    row(
        "setitem.mask",
        writing(lambda x, m: x.__setitem__(m, 1)),
        with_mask(((3, 4), (3, 4)), ((3, 4), (3,))),
    ),
    row(
        "setitem.mask.second",
        writing(lambda x, m: x.__setitem__((slice(None), m), 1)),
        with_mask(((3, 4), (4,))),
    ),
    row(
        "setitem.mask.values",
        lambda x: put(lambda: x > 0)(x, x[x > 0] * 2),
        on((3, 4)),
        dtypes=FLOATS,
        specials=False,
    ),
    row(
        "gather",
        lambda x, i: x.gather(1, i),
        with_indices(
            ((3, 4), [[0, 3], [1, 1], [2, 0]]), ((3, 4), [[1, 2, 2, 2, 0]]), ((2, 3), [[], []])
        ),
    ),
    row(
        "gather.first",
        lambda x, i: x.gather(0, i),
        with_indices(((3, 4), [[0, 2, 1, 0]]), ((), 0), ((3,), [2, 2])),
    ),
    row(
        "scatter",
        lambda x, i, s: x.scatter(1, i, s),
        with_source(((3, 4), [[0, 3], [1, 2], [2, 0]], (3, 2))),
    ),
    row(
        "scatter.part",
        lambda x, i, s: x.scatter(1, i, s),
        with_source(((3, 4), [[0, 3]], (3, 3))),
        differentiable=False,
    ),
    row("scatter.value", lambda x, i: x.scatter(0, i, 2), with_indices(((3, 4), [[0, 2, 1, 0]]))),
    row(
        "scatter_add",
        lambda x, i, s: x.scatter_add(0, i, s),
        with_source(((3, 4), [[0, 2, 1, 0], [0, 2, 2, 1]], (2, 4)), ((3,), [1, 1, 1, 0], (4,))),
        **ADDED,
    ),
    row(
        "index_select",
        lambda x, i: x.index_select(0, i),
        with_indices(((3, 4), [0, 2, 2]), ((3,), [1]), ((3, 4), []), ((3, 4), 1)),
    ),
    row("index_select.last", lambda x, i: x.index_select(-1, i), with_indices(((2, 3, 4), [3, 0]))),
    row(
        "index_add",
        lambda x, i, s: x.index_add(1, i, s),
        with_source(((3, 4), [0, 2, 2], (3, 3))),
        **ADDED,
    ),
    row(
        "index_add.alpha",
        lambda x, i, s: x.index_add(0, i, s, alpha=2),
        with_source(((3, 4), [0, 0], (2, 4))),
        **ADDED,
    ),
    row("index_copy", lambda x, i, s: x.index_copy(0, i, s), with_source(((3, 4), [2, 0], (2, 4)))),
    row("index_fill", lambda x, i: x.index_fill(1, i, 3), with_indices(((3, 4), [2, 0]))),
    row(
        "index_put",
        lambda x, i, s: x.index_put((i,), s),
        with_source(((3, 4), [2, -3], (2, 4)), ((3, 4), [1], (4,))),
    ),
    row(
        "index_put.accumulate",
        lambda x, i, s: x.index_put((i, i), s, accumulate=True),
        with_source(((3, 4), [0, 2, 0], (3,)), ((3, 4), [0, 1], ())),
        **ADDED,
    ),
    row("take", lambda x, i: x.take(i), with_indices(((3, 4), [[0, 11], [5, -1]]))),
    row(
        "take_along_dim",
        lambda x, i: x.take_along_dim(i, 1),
        with_indices(((3, 4), [[0], [3], [1]]), ((3, 4), [[2, 1]])),
    ),
    row(
        "embedding",
        lambda w, i: embedding.embedding(i, w),
        with_indices(((4, 3), [[0, 3], [3, 1]]), ((4, 2), 1)),
        torch=lambda w, i: torch_embedding(i, w),
        dtypes=FLOATS,
    ),
    row(
        "embedding.padding",
        lambda w, i: embedding.embedding(i, w, 1),
        with_indices(((4, 3), [[0, 1], [3, 1]])),
        torch=lambda w, i: torch_embedding(i, w, 1),
        dtypes=FLOATS,
        differentiable=False,
    ),
    row(
        "embedding.frequency",
        lambda w, i: embedding.embedding(i, w, 1, scale_grad_by_freq=True),
        with_indices(((4, 3), [[0, 1], [3, 0]])),
        torch=lambda w, i: torch_embedding(i, w, 1, scale_grad_by_freq=True),
        dtypes=FLOATS,
        differentiable=False,
    ),
    row(
        "one_hot",
        lambda x: embedding.one_hot(x, 4),
        lambda rng, d: [Sample((np.array([[0, 3], [1, 1]]),))],
        torch=lambda x: torch_one_hot(x, 4),
        dtypes=INTEGERS[:1],
        differentiable=False,
    ),
    row(
        "one_hot.infer",
        lambda x: embedding.one_hot(x),
        lambda rng, d: [Sample((np.array([2, 0]),))],
        torch=torch_one_hot,
        dtypes=INTEGERS[:1],
        differentiable=False,
    ),
    row(
        "masked_fill",
        lambda x, m: x.masked_fill(m, 2),
        with_mask(((3, 4), (3, 4)), ((3, 4), (4,)), ((3, 4), (3, 1))),
    ),
    row(
        "masked_select",
        lambda x, m: x.masked_select(m),
        with_mask(((3, 4), (3, 4)), ((3, 4), (4,))),
    ),
    row(
        "nonzero",
        lambda x: x.nonzero(),
        on((3, 4), (5,), ()),
        dtypes=(*NUMERIC, *ANY[-1:]),
        differentiable=False,
    ),
    row("nonzero.tuple", lambda x: x.nonzero(as_tuple=True), on((3, 4), ()), differentiable=False),
    row("repeat_interleave", lambda x: x.repeat_interleave(2, dim=1), on((2, 3), (2, 3, 2))),
    row("repeat_interleave.flat", lambda x: x.repeat_interleave(3), on((2, 2), (2,))),
    row(
        "repeat_interleave.tensor",
        lambda x, n: x.repeat_interleave(n, dim=0),
        with_indices(((3, 2), [2, 0, 1])),
    ),
]
