"""Read Parquet files as frames, with pyarrow where it is installed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hpcgym.base.errors import TraceError, unreadable
from hpcgym.base.packages import needing

if TYPE_CHECKING:
    import pandas as pd

MAGIC = b"PAR1"  # what a Parquet file begins with


def read_parquet(path: Path, *, drop_nested: bool = False) -> pd.DataFrame:
    """Read a table; columns of lists and the like are refused, or left out.

    Raises:
        TraceError: The file cannot be read, or a column is nested. Or pyarrow is not installed.
    """
    what, otherwise = f"{path}: reading Parquet", "write the table as CSV"
    with needing(what, "pyarrow", error=TraceError, instead=otherwise):
        import pyarrow.parquet
    try:
        table = pyarrow.parquet.read_table(path)
        nested = [field.name for field in table.schema if pyarrow.types.is_nested(field.type)]
        if drop_nested:
            table = table.drop_columns(nested)
        frame: pd.DataFrame = table.to_pandas(integer_object_nulls=True)  # not as floats
    except OSError as error:
        raise TraceError(unreadable(path, error)) from None
    except (pyarrow.ArrowException, ValueError, LookupError, TypeError, AttributeError) as error:
        # pandas' notes inside the file raise what Python's own parsers do
        reason = " ".join(str(error).split())
        raise TraceError(f"{path}: not a Parquet file: {reason}") from None
    if nested and not drop_nested:
        kind = f"cells of type {table.schema.field(nested[0]).type}"
        raise TraceError(f"{path}: {nested[0]} has {kind}; allowed: one value in each")
    return frame.reset_index(drop=True)


def column_names(path: Path) -> list[str]:
    """Return the names of the columns; none where the file cannot be read."""
    try:
        import pyarrow.parquet

        return [str(name) for name in pyarrow.parquet.read_schema(path).names]
    except (ImportError, OSError, ValueError, LookupError):  # damage is a ValueError
        return []
