"""Products of matrices that lie in the cache, a tile of the result in registers: text for library
kernels.

In: how matrices are read and written, as expressions. Out: statements. Vectors run along the rows
of `b` and of the result. Elements of `a` are spread over a vector one by one, so it may lie in any
order. Rows of `b` are read up to the next multiple of `columns_of`.
"""

from __future__ import annotations

import functools

from tracejit.config import flags
from tracejit.jit.lowering.abi import VECTOR_BYTES
from tracejit.jit.lowering.target import processor


def indented(text: str, depth: int) -> str:
    """Return the lines of `text`, `depth` levels further in."""
    return "\n".join(" " * 4 * depth + line for line in text.splitlines())


def tile_of() -> tuple[int, int]:
    """Return rows and vectors of a tile: the sums in them fill most of the processor's
    registers."""
    return _tile_for(flags.target)


@functools.cache
def _tile_for(target: str) -> tuple[int, int]:
    return (8, 2) if "+avx512f" in processor(target)[1] else (6, 1)


def columns_of(itemsize: int) -> int:
    """Return the columns of a tile: rows of `b` are padded to a multiple of it."""
    return tile_of()[1] * VECTOR_BYTES // itemsize


def product(
    m: str, n: str, k: str, a: str, a_row: str, a_step: str, b: str, b_step: str, c: str,
    c_row: str, dtype: str, added: bool = False, padded: bool = True, narrow: bool = False,
    pack: str = "",
) -> str:  # fmt: skip
    """Return statements for c = a (m x k) times b (k x n), or c += that.

    - `a`: pointer and place of its first element, as `pointer[place`; `b` and `c` likewise
    - `a_row`, `a_step`: from row to row and from column to column of a
    - `b_step`, `c_row`: from row to row of b, and of c
    - `padded`: rows of c may be written up to the next multiple of `columns_of`; else the pointer
      `tile` is at hand
    - `narrow`: n is one vector at most
    - `pack`: a pointer to room for rows of a tile, and one vector. Those of a are copied there
      first, which pays where they lie apart.
    """
    rows, vectors = (12, 1) if narrow else tile_of()
    lanes = VECTOR_BYTES // (4 if dtype == "float32" else 8)
    width = lanes * vectors
    (a, a_place), (b, b_place), (c, c_place) = (x.split("[") for x in (a, b, c))
    sums = [(i, j, f"s{i}_{j}", f"c{i} + {j * lanes}") for i in range(rows) for j in range(vectors)]
    # Rows beyond the last one are the last one, computed again.
    places = [f"r{i} = {a_place} + min(p0 + {i}, {m} - 1) * ({a_row})" for i in range(rows)]
    across, down = f"for q0 in range(0, {n}, {width}):", f"for p0 in range(0, {m}, {rows}):"
    if pack:
        copied = [f"{pack}[r * {rows} + {i}] = {a}[r{i} + r * ({a_step})]" for i in range(rows)]
        if a_row == "1" and lanes >= rows:
            copied = [
                f"if p0 + {lanes} <= {m}:",
                f"    store_vector({pack}, r * {rows}, load_vector({a}, r0 + r * ({a_step})))",
                "else:",
                *("    " + one for one in copied),
            ]
        first = [*places, f"for r in range({k}):", *("    " + line for line in copied), across]
        head, a_step = [down, *("    " + line for line in first)], str(rows)
        elements = [f"{pack}[step + {i}]" for i in range(rows)]
    else:
        head = [across, "    " + down, *("        " + place for place in places)]
        elements = [f"{a}[r{i} + step]" for i in range(rows)]
    lines = [
        *head,
        *(f"        c{i} = {c_place} + min(p0 + {i}, {m} - 1) * ({c_row}) + q0"
          for i in range(rows)),
        *(f"        {s} = " + (f"load_vector({c}, {at})" if added else f"spread(np.{dtype}(0.0))")
          for _, _, s, at in sums),
        f"        line = {b_place} + q0",
        "        step = 0",
        f"        for r in range({k}):",
        *(f"            b{j} = load_vector({b}, line + {j * lanes})" for j in range(vectors)),
    ]  # fmt: skip
    for i in range(rows):
        lines.append(f"            one = spread({elements[i]})")
        lines += [f"            s{i}_{j} = s{i}_{j} + one * b{j}" for j in range(vectors)]
    lines += [f"            line += {b_step}", f"            step += {a_step}"]
    stores = [f"store_vector({c}, {at}, {s})" for _, _, s, at in sums]
    if padded:
        return "\n".join([*lines, *(f"        {store}" for store in stores)])
    return "\n".join([
        *lines,
        f"        if q0 + {width} <= {n}:",
        *(f"            {store}" for store in stores),
        "        else:",
        *(f"            store_vector(tile, {i * width + j * lanes}, {s})" for i, j, s, _ in sums),
        f"            for p in range(p0, min(p0 + {rows}, {m})):",
        f"                at = {c_place} + p * ({c_row})",
        f"                for q in range(q0, {n}):",
        f"                    {c}[at + q] = tile[(p - p0) * {width} + q - q0]",
    ])  # fmt: skip
