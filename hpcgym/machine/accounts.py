"""Accounts: a tree of accounts and users, and the shares of the machine that each was given."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import NamedTuple

from hpcgym.base.errors import PolicyError, unknown_name

LARGEST_SHARES = 2**31 - 2
LARGEST_USAGE = 2**50


class Association(NamedTuple):
    """An account, or a user of one: what Slurm calls an association, and OpenPBS a vertex."""

    account: str  # name of the account
    user: str = ""  # name of its user, "" = the account itself
    # The account above an account, "" = it is the root; of a user the account whose shares it
    # divides, "" = its own.
    parent: str = ""
    shares: int = 1  # shares that it was given among its siblings, >= 0
    usage: float = 0.0  # what a user had used at time 0, decayed, in processors times s

    @property
    def above(self) -> str:
        """Return the account above, "" = it is the root."""
        return (self.parent or self.account) if self.user else self.parent

    def __str__(self) -> str:
        return f"user {self.user!r} of account {self.account!r}" if self.user else self.account


@dataclass(frozen=True)
class Accounts:
    """A tree of accounts, each behind the one above it; the first is the root.

    Raises:
        PolicyError: No root or several, an account that is not there, a line that is there twice,
            no user, or a value out of range.
    """

    lines: tuple[Association, ...]  # accounts and users

    def __post_init__(self) -> None:
        known: set[str] = set()
        for (account, user), n in Counter(line[:2] for line in self.lines).items():
            if n > 1:
                raise PolicyError(f"accounts: {Association(account, user)} is there {n} times")
        for line in self.lines:
            above = line.above
            if above not in known and (known or line.user or above):
                wrong = unknown_name("account", above, known)
                raise PolicyError(f"accounts: {line} is below no account of a line before: {wrong}")
            if not line.user:
                known.add(line.account)
            _refuse_out_of_range(line)
        if not self.users:
            raise PolicyError("accounts: no user; each needs a line of its own")

    @classmethod
    def of(cls, lines: Iterable[Sequence[object]], root: str = "root") -> Accounts:
        """Return a tree of accounts under one root, of tuples (account, user, shares[, usage])."""
        made = [Association(root)]
        for account, user, shares, *usage in lines:
            above = root if not user else ""
            made.append(Association(str(account), str(user), above, shares, *usage))  # type: ignore[arg-type]
        return cls(tuple(made))

    @classmethod
    def flat(cls, n_users: int) -> Accounts:
        """Return a root with so many users of one share each, named by number."""
        users = (Association("root", str(user)) for user in range(n_users))
        return cls((Association("root"), *users))

    def __str__(self) -> str:
        return f"{len(self.users)} users"

    @property
    def users(self) -> tuple[int, ...]:
        """Return the rows of users among the lines."""
        return tuple(row for row, line in enumerate(self.lines) if line.user)

    @property
    def parents(self) -> tuple[int, ...]:
        """Return the row of the account above each line, 0 for the root."""
        at = {line.account: row for row, line in enumerate(self.lines) if not line.user}
        return tuple(at.get(line.above, 0) for line in self.lines)

    def row_of(self, account: str, user: str) -> int | None:
        """Return the row of a user; of one with a single account also where none is known."""
        rows = [row for row in self.users if self.lines[row].user == user]
        for row in rows:
            if self.lines[row].account == account:
                return row
        return rows[0] if len(rows) == 1 and not account else None


def _refuse_out_of_range(line: Association) -> None:
    """Refuse shares and usage that are no numbers of their kinds."""
    is_share = isinstance(line.shares, Integral) and not isinstance(line.shares, bool)
    if not is_share or not 0 <= line.shares <= LARGEST_SHARES:
        raise PolicyError(
            f"accounts: shares of {line} must be whole, from 0 to {LARGEST_SHARES}, got "
            f"{line.shares!r}"
        )
    if not isinstance(line.usage, Real) or not 0 <= line.usage <= LARGEST_USAGE:
        raise PolicyError(
            f"accounts: usage of {line} must be from 0 to {LARGEST_USAGE}, got {line.usage!r}"
        )
