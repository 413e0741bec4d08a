"""A site's rows by reference, for the process that answers a question, and watched, for the service that starts it."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Any

from federation.contract.errors import InputError
from federation.contract.plugins import Reference
from federation.signed_messages.agreement import Agreement
from parties.party_data.cohort import Holdings
from parties.site.settings import Table as Where
from scenarios.deployment.sources import require_there, source
from scenarios.deployment.table_check import examined

_QUERY_SECONDS = 600  # after which a query is made again


class SiteTable:
    """The rows of one site, for the process that answers a question: it reads them, and checks them, by itself.

    `data` is the section of that name of the site's configuration, and `agreement` the plan; both as JSON values.
    """

    def __init__(self, data: dict[str, Any], agreement: dict[str, Any]) -> None:
        self._where = Where.model_validate_json(json.dumps(data))
        self._agreement = Agreement.model_validate_json(json.dumps(agreement))

    def holdings(self, party: int) -> Holdings:
        """The rows as they now are, repaired. Raises `InputError` where there are none of such columns."""
        rows = source(self._where, self._agreement.feature_names)
        found = examined(rows, self._agreement, self._where, party)
        if found.holdings is None:
            raise InputError("; ".join(found.errors))
        return found.holdings

    def require_there(self) -> None:
        """Raises `InputError` where the rows could not be read now, whatever they are; none is read."""
        require_there(self._where)

    def evaluation(self) -> None:
        """None: there is no truth to compare with."""


@dataclass(frozen=True)
class WatchedTable:
    """The rows of a site for its service, which has them read again when they may have changed."""

    where: Where
    agreement: Agreement
    party: int

    @property
    def reference(self) -> str:
        """Of the provider that a process of its own makes."""
        known = {"data": self.where, "agreement": self.agreement}
        arguments = {name: of.model_dump(mode="json", by_alias=True) for name, of in known.items()}
        return Reference(f"{SiteTable.__module__}:{SiteTable.__name__}", arguments).to_json()

    def version(self) -> object:
        """What is another where the file is another one, and for a query every ten minutes."""
        if self.where.file is None:
            return time.monotonic() // _QUERY_SECONDS
        try:
            known = self.where.file.stat()
        except OSError:
            return None
        return known.st_mtime_ns, known.st_size, known.st_ino

    def read(self) -> tuple[Holdings | None, list[str]]:
        """The rows, None where they cannot be used; and what was found, only the errors where there are some."""
        try:
            rows = source(self.where, self.agreement.feature_names)
            found = examined(rows, self.agreement, self.where, self.party)
        except InputError as error:
            return None, [str(error)]
        if found.errors:
            return None, found.errors
        return found.holdings, [one.text for one in found.findings]
