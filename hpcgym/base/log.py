"""The logger `hpcgym`: what is said beside results, such as that kernels are compiled.

A program that sets up logging gets its records. Elsewhere they are lines on standard error.
"""

import logging
import sys

LOG = logging.getLogger("hpcgym")


class _Printing(logging.Handler):
    """Prints records that no other handler gets."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print a line on today's standard error."""
        if LOG.handlers == [self] and not (LOG.propagate and logging.root.handlers):
            print(f"hpcgym: {record.getMessage()}", file=sys.stderr, flush=True)


LOG.addHandler(_Printing())
LOG.setLevel(logging.INFO)
