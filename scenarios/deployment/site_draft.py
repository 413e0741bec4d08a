"""The configuration that a new site begins with: what the invitation says, and comments for what only it knows."""

import json
import re
from pathlib import Path
from typing import Any

from federation.contract.trust import Servers
from federation.signed_messages.agreement import Agreement, Column
from federation.signed_messages.keys import fingerprint
from parties.site.accounts import printable
from scenarios.data.hashing import read_for
from scenarios.data.tables import cut
from scenarios.reports.guarantee_page import template

_NEEDED: dict[Servers, str] = {
    "one_semi_honest": 'this plan needs "one_semi_honest", too: believe that its coordinator never cheats; ',
    "two": 'this plan needs "two", too: believe that its two servers do not collude; ',
}


def site_draft(invitation: Agreement, name: str, data: Path) -> str:
    """The text of a site.toml, whose paths are those of its folder."""
    kinds = {read_for(column.name): _kind(column) for column in invitation.columns}
    label = invitation.label
    named = f"one of {', '.join(map(_plain, label.classes))}"
    return _drafted(
        "site.toml",
        invitation,
        name,
        data=str(data),
        table=data.stem,
        kinds=sorted(kinds.items()),
        labels=named if label.classes else f"a number in {list(label.range or ())}",
        first=read_for(invitation.columns[0].name),
        needed=_NEEDED.get(invitation.servers, ""),
    )


def second_draft(invitation: Agreement, name: str) -> str:
    """The text of the configuration of a second server."""
    return _drafted("second.toml", invitation, name)


def _drafted(file: str, invitation: Agreement, name: str, **known: Any) -> str:
    written = {"plain": _plain, "quoted": _quoted, "key": _key, "aggregator": fingerprint(invitation.aggregator_key)}
    return template(file).render(plan=invitation, name=name, **written, **known) + "\n"


def _kind(column: Column) -> str:
    if column.name != read_for(column.name):
        return "texts, of which the words are hashed"
    return "texts" if column.text else "numbers"


def _quoted(text: str) -> str:
    """A text of TOML, which takes the escapes of JSON."""
    return json.dumps(str(text), ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(text: str) -> str:
    """A name as a key of TOML."""
    return text if re.fullmatch(r"[A-Za-z0-9_-]+", text) else _quoted(text)


def _plain(text: str) -> str:
    """A text for a comment: whoever wrote the invitation writes no other line than that one."""
    return printable(cut(text))
