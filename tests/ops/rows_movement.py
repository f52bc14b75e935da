"""Rows of views, copies in another order, joining and splitting."""

from __future__ import annotations

from tests.opinfo import ANY, HALVES, NUMERIC, OpInfo, Sample, array
from tracejit.core.ops import joining, padding, stacking, types


def on(*shapes, **keywords):
    """One sample for each shape."""
    return lambda rng, d: [Sample((array(rng, d, *shape),), keywords) for shape in shapes]


def row(name, function, samples, **options):
    return OpInfo(
        name, samples, function=function, **{"dtypes": ANY, "ulp": 0, "exact": True, **options}
    )


def lists(*groups):
    """One sample for each group of shapes: a list of arrays."""
    return lambda rng, d: [
        Sample(([array(rng, d, *shape) for shape in group],)) for group in groups
    ]


def as_types(*targets):
    """One sample for each dtype: an array whose rows have as many bytes as any needs, and it."""
    return lambda rng, d: [Sample((array(rng, d, *shape, 8), to))
                           for to in targets for shape in ((3,), ())]


def two(*pairs):
    """One sample for each pair of shapes."""
    return lambda rng, d: [Sample(tuple(array(rng, d, *shape) for shape in pair)) for pair in pairs]


def torch_pad(x, pad, mode="constant", value=None):
    import torch

    return torch.nn.functional.pad(x, pad, mode, value)


def padded(*calls):
    return lambda rng, d: [Sample((array(rng, d, *shape), *rest)) for shape, *rest in calls]


PADS = padded(
    ((3, 4), (1, 2)),
    ((3, 4), (0, 1, 2, 0)),
    ((3, 4), (-1, 2)),
    ((3, 4), (-1, -1, -2, 1)),
    ((0, 2), (1, 1, 1, 0)),
    ((2,), (1, 0)),
)
FLOATING_ONLY = {"dtypes": (*NUMERIC[:2], *HALVES)}

ROWS = [
    row("reshape", lambda x: x.reshape(4, 3), on((3, 4), (2, 6), (12,), (2, 2, 3))),
    row("reshape.infer", lambda x: x.reshape(2, -1), on((3, 4), (12,), (2, 1, 6), (0, 2))),
    row("reshape.scalar", lambda x: x.reshape(()), on((1,), (1, 1))),
    row("reshape.split", lambda x: x.reshape(2, 3, 2, 2).permute(0, 2, 1, 3), on((2, 3, 4))),
    row("reshape.merge", lambda x: x.permute(0, 2, 1, 3).reshape(2, 2, 6), on((2, 3, 2, 2))),
    row("reshape.ragged", lambda x: x.reshape(3, 2, 2), on((4, 3))),
    row("view", lambda x: x.view(x.shape[0], -1), on((2, 3, 2), (1, 4)), strides=False),
    row("view.dtype", lambda x, d: x.view(d), as_types(types.uint8, types.int16, types.int64),
        strides=False, differentiable=False),
    row("view.dtype_back", lambda x, d: x.view(types.int64).view(d) + 1, as_types(types.float64),
        torch=lambda x, d: x.view(__import__("torch").int64).view(d) + 1, strides=False,
        differentiable=False),
    row("view_as", lambda x, y: x.view_as(y), two(((6,), (2, 3))), strides=False),
    row("flatten", lambda x: x.flatten(), on((2, 3), (4,), (), (0, 2))),
    row("flatten.dims", lambda x: x.flatten(1, -1), on((2, 3, 2), (2, 3))),
    row("ravel", lambda x: x.ravel(), on((2, 3))),
    row("unflatten", lambda x: x.unflatten(1, (2, -1)), on((2, 6), (1, 4, 3))),
    row("permute", lambda x: x.permute(2, 0, 1), on((2, 3, 4), (1, 0, 2))),
    row("permute.tuple", lambda x: x.permute((1, 0)), on((2, 3))),
    row("transpose", lambda x: x.transpose(0, -1), on((2, 3), (2, 3, 4), (5,), ())),
    row("swapaxes", lambda x: x.swapaxes(0, 1), on((2, 3))),
    row("t", lambda x: x.t(), on((2, 3), (4,), ())),
    row("T", lambda x: x.T, on((2, 3))),
    row("mT", lambda x: x.mT, on((2, 3), (2, 3, 4))),
    row("movedim", lambda x: x.movedim((0, 1), (2, 0)), on((2, 3, 4))),
    row("movedim.one", lambda x: x.movedim(-1, 0), on((2, 3, 4))),
    row("unsqueeze", lambda x: x.unsqueeze(-1), on((2, 3), ())),
    row("unsqueeze.middle", lambda x: x.unsqueeze(1), on((2, 3))),
    row("squeeze", lambda x: x.squeeze(), on((1, 2, 1), (2, 3), (1,))),
    row("squeeze.dim", lambda x: x.squeeze(0), on((1, 2), (2, 1), ())),
    row("squeeze.dims", lambda x: x.squeeze((0, 2)), on((1, 2, 1))),
    row("expand", lambda x: x.expand(2, 3, 4), on((3, 4), (1, 3, 4), (2, 1, 4), (), (1, 1))),
    row("expand.keep", lambda x: x.expand(-1, 3), on((2, 1), (2, 3))),
    row("expand_as", lambda x, y: x.expand_as(y) * y, two(((3,), (2, 3)), ((2, 1), (2, 3)))),
    row("broadcast_to", lambda x: x.broadcast_to((2, 3)), on((3,), (2, 1))),
    row("narrow", lambda x: x.narrow(1, 1, 2), on((2, 3), (2, 4, 2))),
    row("narrow.end", lambda x: x.narrow(0, -1, 1), on((3,), (2, 3))),
    row("select", lambda x: x.select(1, -1), on((2, 3), (2, 3, 2))),
    row("unbind", lambda x: x.unbind(1), on((2, 3), (2, 2, 2))),
    row("split", lambda x: x.split(2, dim=0), on((5, 2), (4,), (1, 2))),
    row("split.sizes", lambda x: x.split([1, 3], dim=1), on((2, 4))),
    row("chunk", lambda x: x.chunk(3, dim=0), on((5, 2), (6,), (2,))),
    row("tensor_split", lambda x: x.tensor_split(3), on((5, 2), (2,))),
    row("tensor_split.cuts", lambda x: x.tensor_split((1, 4)), on((5, 2), (2,))),
    row("flip", lambda x: x.flip(0), on((3, 2), (4,), (0, 2))),
    row("flip.dims", lambda x: x.flip(0, -1), on((3, 2, 2))),
    row("roll", lambda x: x.roll(1), on((3, 2), (4,), (0,))),
    row("roll.dims", lambda x: x.roll((1, -2), (0, 1)), on((3, 4), (1, 2))),
    row("diagonal", lambda x: x.diagonal(), on((3, 4), (4, 3), (2, 2, 3))),
    row("diagonal.offset", lambda x: x.diagonal(1, -2, -1), on((3, 4), (4, 3), (2, 2, 3))),
    row("diagonal.below", lambda x: x.diagonal(-1, 0, 1), on((3, 4), (4, 3))),
    row("tril", lambda x: x.tril(), on((3, 4), (2, 3, 3), (0, 3))),
    row("tril.diagonal", lambda x: x.tril(-1), on((3, 4))),
    row("triu", lambda x: x.triu(1), on((3, 4), (2, 3, 3))),
    row("pad", padding.pad, PADS, torch=torch_pad),
    row("constant_pad_nd", padding.constant_pad_nd, PADS, torch=torch_pad),
    row(
        "pad.value",
        lambda x: padding.pad(x, (1, 1), value=2),
        on((2, 3)),
        torch=lambda x: torch_pad(x, (1, 1), value=2),
    ),
    *(
        row(
            f"pad.{mode}",
            padding.pad,
            padded(((2, 3, 4), (1, 2), mode), ((2, 2, 4), (2, 0), mode)),
            torch=torch_pad,
            **FLOATING_ONLY,
        )
        for mode in ("reflect", "replicate", "circular")
    ),
    row("repeat", lambda x: x.repeat(2, 3), on((2,), (2, 3), (1, 0), ())),
    row("repeat.lead", lambda x: x.repeat(2, 1, 2), on((2, 3))),
    row("tile", lambda x: x.tile((2,)), on((2,), (2, 3), ())),
    row("as_strided", lambda x: x.as_strided((2, 3), (2, 1), 1), on((3, 4), (12,)), strides=False),
    row("contiguous", lambda x: x.t().contiguous(), on((2, 3))),
    row("clone", lambda x: x.clone(), on((2, 3), (), (0,))),
    row("slice_scatter", lambda x, y: x.slice_scatter(y, 0, 1, 5, 2), two(((5, 2), (2, 2)))),
    row("select_scatter", lambda x, y: x.select_scatter(y, 1, -1), two(((3, 2), (3,)))),
    row("diagonal_scatter", lambda x, y: x.diagonal_scatter(y, 1), two(((3, 4), (3,)))),
    row("cat", joining.cat, lists(((2, 3), (1, 3)), ((0, 3), (2, 3)), ((2, 3),)), torch="cat"),
    row(
        "cat.skipped",
        joining.cat,
        lists(((2,), (0,), (3,)), ((2, 3), (0,))),
        torch="cat",
        differentiable=False,
    ),
    row(
        "cat.dim",
        lambda xs: joining.cat(xs, dim=-1),
        lists(((2, 3), (2, 1), (2, 2))),
        torch=lambda xs: __import__("torch").cat(xs, dim=-1),
    ),
    row("stack", joining.stack, lists(((2, 3), (2, 3)), ((), ())), torch="stack"),
    row(
        "stack.dim",
        lambda xs: joining.stack(xs, dim=-1),
        lists(((2, 3), (2, 3))),
        torch=lambda xs: __import__("torch").stack(xs, dim=-1),
    ),
    row("hstack", stacking.hstack, lists(((2, 3), (2, 1)), ((2,), (3,))), torch="hstack"),
    row("vstack", stacking.vstack, lists(((2, 3), (1, 3)), ((3,), (3,))), torch="vstack"),
]
