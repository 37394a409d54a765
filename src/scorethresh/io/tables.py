"""CSV: cells that are not denoised stay as they are."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from .data import Data, FileError, ReadOptions
from .words import listed, shorten


@dataclass(frozen=True, eq=False)
class Table:
    """The cells of a text, row by row.

    Attributes
    ----------
    rows : list of list of str
        The cells, headers included.
    start : int
        The first row of numbers.
    delimiter, newline, encoding : str
        How the text was written.
    """

    rows: list[list[str]]
    start: int
    delimiter: str
    newline: str
    encoding: str

    @cached_property
    def names(self) -> list[str]:
        """The names of the columns, or their numbers from 1 if there is no header."""
        width = max((len(row) for row in self.rows[self.start :]), default=0)
        above = self.rows[self.start - 1] if self.start else []
        if len(above) == width:
            return [cell.strip() for cell in above]
        return [str(k + 1) for k in range(width)]

    def column(self, name: str) -> int:
        """Return the index of a column, given by its name or its number from 1."""
        names = self.names
        if name in names:
            return names.index(name)
        if name.isdecimal() and 1 <= int(name) <= len(names):
            return int(name) - 1
        msg = f"there is no column {name!r}. There are {listed(names)}; or give a number from 1 to {len(names)}."
        raise FileError(msg)

    def numeric(self) -> list[int]:
        """Return the indices of the columns that hold nothing but numbers."""
        rows = [row for row in self.rows[self.start :] if row]
        return [
            k
            for k in range(len(self.names))
            if all(k < len(row) and _number(row[k], self.delimiter) is not None for row in rows)
        ]

    def values(self, columns: Sequence[int]) -> NDArray[np.float64]:
        """Return columns as an array of shape (rows, columns). Empty cells are NaN."""
        out = []
        for number, row in enumerate(self.rows[self.start :], self.start + 1):
            if row:
                cells = [_number(row[k], self.delimiter) if k < len(row) else None for k in columns]
                if None in cells:
                    k = columns[cells.index(None)]
                    found = repr(shorten(row[k])) if k < len(row) else "nothing"
                    where = f"row {number}, column {shorten(self.names[k])!r}"
                    msg = f"{where} holds {found}, which is no number. Correct or remove it."
                    raise FileError(msg)
                out.append(cells)
        return np.array(out, dtype=np.float64).reshape(-1, len(columns))


def _number(cell: str, delimiter: str) -> float | None:
    """Return a cell as a number, NaN if it is empty, None if it holds something else."""
    cell = cell.strip()
    if cell.lower() in ("", "na", "null"):
        return math.nan
    try:
        return float(cell if delimiter == "," else cell.replace(",", "."))
    except ValueError:
        return None


def parse_table(raw: bytes) -> Table:
    """Return a text of numbers as a table. The delimiter is found from the text."""
    encoding = "utf-8-sig" if raw.startswith(b"\xef\xbb\xbf") else "utf-8"
    try:
        text = raw.decode(encoding)
    except UnicodeDecodeError:
        encoding = "latin-1"
        text = raw.decode(encoding)
    # Headers come first, so only the later half of the first lines is looked at.
    lines = [line for line in text[:100_000].splitlines()[:200] if line.strip()]
    counts = {d: {line.count(d) for line in lines[len(lines) // 2 :]} for d in "\t;,| "}
    constant = [d for d, found in counts.items() if len(found) == 1 and found != {0}]
    delimiter = constant[0] if constant else ","
    rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
    numbers = ([v for cell in row if (v := _number(cell, delimiter)) is not None] for row in rows)
    start = next((k for k, row in enumerate(numbers) if any(map(math.isfinite, row))), None)
    if start is None:
        msg = "there are no numbers in it"
        raise FileError(msg)
    return Table(rows, start, delimiter, "\r\n" if "\r\n" in text else "\n", encoding)


def read_csv(path: Path, options: ReadOptions) -> Data:
    """Read a CSV file."""
    try:
        table = parse_table(path.read_bytes())
        columns = [table.column(name) for name in options.columns] or table.numeric()
        if not options.columns and len(columns) != 1:
            msg = f"it has the columns {listed(table.names)}. Choose one or more with --column"
            raise FileError(msg)
        values = table.values(columns)
    except FileError as error:
        msg = f"{path}: {str(error).rstrip('.')}."
        raise FileError(msg) from error
    metadata = {"table": table, "columns": columns}
    if len(columns) == 1:
        return Data(values[:, 0], "CSV", metadata=metadata)
    return Data(values, "CSV", stack_axes=(1,), stack_names=("column",), metadata=metadata)


def write_csv(path: Path, data: Data) -> None:
    """Write a CSV file."""
    table, columns = data.metadata["table"], data.metadata["columns"]
    values = iter(data.values.reshape(-1, len(columns)).tolist())
    comma = table.delimiter != "," and any("," in row[k] for row in table.rows[table.start :] if row for k in columns)
    rows = []
    for number, row in enumerate(table.rows):
        row = list(row)
        if row and number >= table.start:
            for k, value in zip(columns, next(values), strict=True):
                if not math.isnan(value):
                    row[k] = f"{value:.12g}".replace(".", "," if comma else ".")
        rows.append(row)
    with open(path, "w", newline="", encoding=table.encoding) as file:
        csv.writer(file, delimiter=table.delimiter, lineterminator=table.newline).writerows(rows)
