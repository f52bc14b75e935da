"""Tables in CSV files: columns of numbers as features, others as targets."""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tracejit.core.eager.construction import tensor
from tracejit.core.ops.types import float32, int64
from tracejit.datasets.samples import Samples, Transform

Column = str | int


class CSVTable(Samples):
    """Rows of a CSV file: samples `(features, target)`, or features without `target`.

    path              a text file in UTF-8
    target            the column to predict, by name or number; a list for several of numbers
    features          the columns to predict from; default: all others
    header            True: the first row names the columns; False: numbers name them
    delimiter         text that separates columns
    transform, target_transform   called with each sample's features, and target

    `data` is float32 (rows, features). `targets` is int64 (rows) for a column of whole numbers,
    float32 for one of other numbers. For a column of texts it is the place of each text in
    `classes`; for a list, float32 (rows, columns). `columns` names the features.

    Raises ValueError naming file, line and column for what is no number. Raises it also for rows of
    unequal length, and for a file without rows or not in UTF-8. Raises KeyError for a column that
    is not there.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
    ...     _ = file.write("length,width,kind\\n1,2.5,b\\n3,4,a\\n")
    ...     file.flush()
    ...     table = CSVTable(file.name, target="kind")
    >>> table.columns, table.classes, table[0]
    (['length', 'width'], ['a', 'b'], (tensor([1.0000, 2.5000]), tensor(1)))
    """

    def __init__(self, path: str | os.PathLike, target: Column | Sequence[Column] | None = None,
                 features: Sequence[Column] | None = None, header: bool = True,
                 delimiter: str = ",", transform: Transform = None,
                 target_transform: Transform = None) -> None:
        super().__init__(transform, target_transform)
        self.path = Path(path)
        self._lines, self._rows = self._read(header, delimiter)
        one = target is None or isinstance(target, (str, int))
        names: Any = [] if target is None else [target] if one else target
        wanted = [self._place(name) for name in names]
        places = [self._place(name) for name in features] if features is not None else [
            place for place in range(len(self._names)) if place not in wanted]
        self.columns = [self._names[place] for place in places]
        self.classes: list[str] = []
        self.data = tensor(self._numbers(places), dtype=float32).reshape(-1, len(places))
        self.targets: Any = None
        if target is not None:
            self.targets = self._one_target(wanted[0]) if one else tensor(
                self._numbers(wanted), dtype=float32)
        # Only reading needs the texts, which are larger than the numbers.
        del self._lines, self._rows

    def _read(self, header: bool, delimiter: str) -> tuple[list[int], list[list[str]]]:
        """Return the rows that are not empty, with the line that each ends on."""
        lines, rows = [], []
        # -sig: spreadsheets write a mark of the byte order before the first column's name.
        with self.path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, delimiter=delimiter, strict=True)
            try:
                for row in reader:
                    if row:
                        lines.append(reader.line_num)
                        rows.append(row)
            except csv.Error as error:
                raise ValueError(f"{self.path}:{reader.line_num}: {error}") from error
            except UnicodeDecodeError as error:
                raise ValueError(f"{self.path}: not a text in UTF-8: {error}") from error
        if len(rows) <= header:
            raise ValueError(f"{self.path}: there are no rows in it")
        first = rows[0]
        self._names = [name.strip() for name in first] if header else [
            str(place) for place in range(len(first))]
        for line, row in zip(lines, rows):
            if len(row) != len(first):
                raise ValueError(f"{self.path}:{line}: {len(row)} columns, expected {len(first)}")
        return lines[header:], rows[header:]

    def _place(self, name: Column) -> int:
        if isinstance(name, str) and name in self._names:
            return self._names.index(name)
        if isinstance(name, int) and -len(self._names) <= name < len(self._names):
            return name % len(self._names)
        raise KeyError(f"{self.path}: no column {name!r} among {self._names}")

    def _numbers(self, places: list[int]) -> list[list[float]]:
        return [[self._number(line, row, place) for place in places]
                for line, row in zip(self._lines, self._rows)]

    def _number(self, line: int, row: list[str], place: int) -> float:
        try:
            return float(row[place])
        except ValueError:
            raise ValueError(f"{self.path}:{line}: column {self._names[place]!r} has "
                             f"{row[place]!r}, expected a number") from None

    def _one_target(self, place: int) -> Any:
        texts = [row[place].strip() for row in self._rows]
        # The narrowest kind that all texts have; texts are classes where neither fits.
        for kind, dtype in ((int, int64), (float, float32)):
            try:
                return tensor([kind(text) for text in texts], dtype=dtype)
            except (ValueError, OverflowError):
                continue
        self.classes = sorted(set(texts))
        numbers = {text: number for number, text in enumerate(self.classes)}
        return tensor([numbers[text] for text in texts], dtype=int64)

    def pair(self, index: int) -> tuple[Any, Any]:
        return self.data[index], None if self.targets is None else self.targets[index]

    def __getitem__(self, index: int) -> Any:
        pair = super().__getitem__(index)
        return pair[0] if self.targets is None else pair

    def __len__(self) -> int:
        return len(self.data)
