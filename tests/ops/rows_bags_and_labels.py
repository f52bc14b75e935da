"""Rows of bags of rows, of losses of labels, and of bilinear forms."""

from importlib import import_module
from typing import Any

import numpy as np

import tracejit
import tracejit.nn.functional
from tests.opinfo import FLOATS, OpInfo, Sample, array
from tests.ops.rows_composite import functional
from tests.ops.rows_linalg import shaped


def index_first(name: str, **options: Any) -> Any:
    """`nn.functional.<name>(index, table, ...)` with the table first."""
    def call(table: Any, index: Any, *others: Any) -> Any:
        ours = isinstance(table, tracejit.Tensor)
        library = tracejit.nn.functional if ours else import_module("torch.nn.functional")
        return getattr(library, name)(index, table, *others, **options)

    return call


def bags(rng: np.random.Generator, d: Any) -> list[Sample]:
    flat = np.array([0, 3, 3, 1, 2])
    return [Sample((array(rng, d, 4, 3), flat, np.array([0, 2, 2]))),
            Sample((array(rng, d, 4, 2), flat.reshape(1, 5)))]  # fmt: skip


def labels(rng: np.random.Generator, d: Any) -> list[Sample]:
    many = np.array([[0, 3, -1, 1], [2, -1, 0, 0], [-1, 0, 0, 0]])
    return [Sample((array(rng, d, 3, 4, low=-0.4, high=0.4), many)),
            Sample((array(rng, d, 4, low=-0.4, high=0.4), many[0]))]  # fmt: skip


def row(name: str, samples: Any, function: Any, **keywords: Any) -> OpInfo:
    return OpInfo(name, samples, function=function, specials=False, dtypes=FLOATS, **keywords)


ROWS = [
    *(row(f"embedding_bag.{mode}", bags, index_first("embedding_bag", mode=mode), ulp=4,
          strides=False) for mode in ("sum", "mean", "max")),
    row("multilabel_margin_loss", labels, functional("multilabel_margin_loss"), ulp=4, cancel=4,
        strides=False),
    row("bilinear", shaped(((4, 3), (4, 5), (2, 3, 5), (2,)), ((3,), (5,), (2, 3, 5), None),
                           ((0, 3), (0, 5), (2, 3, 5), None)),
        functional("bilinear"), cancel=16),
]  # fmt: skip
