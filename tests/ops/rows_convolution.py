"""Rows of the convolutions and their transposes."""

from tests.opinfo import FLOATS, HALVES, OpInfo
from tests.ops.rows_composite import functional
from tests.ops.rows_linalg import shaped

IMAGES = (2, 4, 5, 6)


def row(name: str, *calls: tuple, **keywords: object) -> OpInfo:
    return OpInfo(name, shaped(*calls, **keywords), cancel=16, dtypes=(*FLOATS, *HALVES),
                  specials=False, function=functional(name.partition(".")[0]))  # fmt: skip


ROWS = [
    row("conv1d", ((2, 3, 7), (4, 3, 3), (4,)), ((3, 7), (4, 3, 1), None),
        ((0, 3, 7), (4, 3, 3), (4,)), ((1, 1, 1), (1, 1, 1), (1,))),
    row("conv1d.strided", ((2, 4, 9), (6, 2, 2), (6,)), stride=2, padding=1, dilation=3, groups=2),
    row("conv2d", (IMAGES, (3, 4, 3, 2), (3,)), ((4, 5, 6), (3, 4, 1, 1), None)),
    row("conv2d.padded", (IMAGES, (6, 2, 3, 2), (6,)), stride=(2, 1), padding=(1, 2),
        dilation=(1, 2), groups=2),
    row("conv2d.depthwise", (IMAGES, (4, 1, 3, 3), (4,)), padding=1, groups=4),
    row("conv2d.same", (IMAGES, (3, 4, 3, 4), (3,)), padding="same"),
    row("conv3d", ((2, 2, 3, 4, 3), (2, 1, 2, 3, 2), (2,)), stride=(1, 2, 1), padding=1, groups=2),
    row("conv_transpose1d", ((2, 4, 3), (4, 3, 3), (3,)), ((4, 3), (4, 3, 2), None), dilation=2),
    row("conv_transpose2d", ((2, 4, 3, 2), (4, 2, 3, 2), (4,)), stride=(2, 3), padding=1,
        output_padding=(1, 0), groups=2),
    row("conv_transpose2d.longer", ((2, 2, 3, 2), (2, 2, 3, 2), (2,)), stride=2, dilation=3,
        output_padding=2),
    row("conv_transpose3d", ((2, 2, 2, 2, 3), (2, 3, 2, 1, 2), (3,)), stride=2),
]  # fmt: skip
