"""Variants of a world that fail: one costs its own releases and nobody else's."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from federation.contract.errors import DEBUG, BudgetExceededError, FederationError, QuorumError, of_disk, told


class FailedVariants:
    """Why variants failed, by name: `causes`. The others are those of `names`."""

    def __init__(self, names: Iterable[str]) -> None:
        self.causes: dict[str, str] = {}
        self._left = set(names)

    @contextmanager
    def sparing_others(self, name: str) -> Iterator[None]:
        """Work on one variant; an error of it is noted, and the others go on.

        Raised, as by `blaming`, are budgets and quorums, which are for the whole world, a full disk, and the failure of
        the last variant that is left; with FEDERATION_DEBUG set every error.
        """
        with blaming(name):
            try:
                yield
            except Exception as error:
                if of_disk(error):
                    raise
                self._left.discard(name)
                if isinstance(error, BudgetExceededError | QuorumError) or not self._left or os.environ.get(DEBUG):
                    raise
                self.causes[name] = told(error)


@contextmanager
def blaming(variant: str) -> Iterator[None]:
    """Raises errors as `FederationError`s of the same kind that name the variant.

    As they are raised those of the disk, which are no variant's, and with FEDERATION_DEBUG all.
    """
    try:
        yield
    except Exception as error:
        if os.environ.get(DEBUG) or of_disk(error):
            raise
        kind = type(error) if isinstance(error, FederationError) else FederationError
        raise kind(f"variant '{variant}': {told(error)}") from error
