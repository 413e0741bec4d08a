"""The configuration that a new site begins with: what the invitation says, and comments for what only it knows."""

import json
import re
from pathlib import Path

from federation.contract.trust import Servers
from federation.signed_messages.agreement import Agreement, Column
from federation.signed_messages.keys import fingerprint
from parties.site.accounts import printable
from scenarios.data.hashing import read_for
from scenarios.data.tables import cut


def site_draft(invitation: Agreement, name: str, data: Path) -> str:
    """The text of a site.toml, whose paths are those of its folder."""
    kinds = {read_for(column.name): _kind(column) for column in invitation.columns}
    columns = [f"#   {_plain(name)}: {kinds[name]}" for name in sorted(kinds)]
    label = invitation.label
    labels = (
        f"one of {', '.join(map(_plain, label.classes))}" if label.classes else f"a number in {list(label.range or ())}"
    )
    columns.append(f"#   {_plain(label.name)}: what is learned, {labels}")
    if invitation.bags:
        columns.append(
            f"#   {_plain(invitation.bags.column)}: in which bag a row is, {invitation.bags.most} bags at most"
        )
    if invitation.person:
        columns.append(f"#   {_plain(invitation.person)}: whose row it is")
    first = read_for(invitation.columns[0].name)
    return f"""# The site '{name}' of the plan '{_plain(invitation.name)}'. Only its owner may read this file.
name = {_quoted(name)}
plan = "plan.json"    # comes from the plan's coordinator once all sites have sent their keys
state = "state"       # what this site has spent and sent; never delete it, never put an older copy back

[connection]
key = "key"           # never leaves this site

[data]
file = {_quoted(str(data))}  # csv, parquet, npz or svmlight; or url = "postgresql+psycopg://..." and a query
table = {_quoted(data.stem)}  # what this table is called here, for ever: what is spent is spent by it
# missing = "drop"    # rows without a value: "drop", "refuse", or a section [data.missing] with COLUMN = VALUE

# The plan's columns:
{chr(10).join(columns)}
# Write here those that are called otherwise in the file, or have other values:
[data.columns]
# {_key(first)} = "NAME HERE"
# {_key(label.name)} = {{from = "NAME HERE", map = {{"VALUE HERE" = "VALUE OF THE PLAN"}}}}

[policy]
# Compare these digits with the plan's coordinator by telephone before you approve anything.
aggregators = [{_quoted(fingerprint(invitation.aggregator_key))}]
protocols = [{_quoted(invitation.protocol)}]
approve = "plan"      # "each": somebody here approves every exchange; "auto": nobody need
public-features = false  # {_features(invitation)}
most-questions = 200  # answered in an exchange, and in a day
least-rows = 1        # of this table, for any question to be answered
{_sums(invitation) if invitation.secure else ""}
# What all plans together may cost this table, ever. These are the least that this plan needs.
{_allowances(invitation)}
[limits]
memory = "3GiB"       # of a process that answers a question
seconds = 30          # after which an answer leaves, however long it took; over four times what reading takes
"""


def second_draft(invitation: Agreement, name: str) -> str:
    """The text of the configuration of a second server."""
    return f"""# The second server '{name}' of the plan '{_plain(invitation.name)}'. Only its owner may read this file.
role = "second-server"  # it holds no rows, and takes the masks off the sums of this plan
name = {_quoted(name)}
plan = "plan.json"    # comes from the plan's coordinator once all have sent their keys
state = "state"       # of which sums it has told the masks; never delete it, never put an older copy back

[connection]
key = "key"           # never leaves this machine; with it the coordinator could read what sites send

[policy]
# Compare these digits with the plan's coordinator by telephone before you approve anything.
aggregators = [{_quoted(fingerprint(invitation.aggregator_key))}]
approve = "plan"      # "each": somebody here approves every exchange; "auto": nobody need
colluding = 0.1       # of the sites that may collude with the coordinator
"""


def _kind(column: Column) -> str:
    if column.name != read_for(column.name):
        return "texts, of which the words are hashed"
    return "texts" if column.text else "numbers"


def _features(invitation: Agreement) -> str:
    needed = "this plan needs true: it protects labels alone; " if invitation.public_features else ""
    return f"{needed}true only if what a row says is known to all, but its label"


def _sums(invitation: Agreement) -> str:
    """What a site says of who adds up secure sums: as little belief as can be, until somebody writes more."""
    needed = _NEEDED.get(invitation.servers, "")
    text = f"""colluding = 0.1       # of the sites that may collude with who asks; secure sums hide yours from them
servers = ["one"]     # {needed}"one" may do what it likes
"""
    if invitation.second is not None:
        text += f"""# The key for masks, as '{invitation.second.name}' reads it out by telephone, NOT the coordinator:
second-servers = []
"""
    return text


_NEEDED: dict[Servers, str] = {
    "one_semi_honest": 'this plan needs "one_semi_honest", too: believe that its coordinator never cheats; ',
    "two": 'this plan needs "two", too: believe that its two servers do not collude; ',
}


def _allowances(invitation: Agreement) -> str:
    text = ""
    for promise in invitation.promises:
        account = "trusted" if promise.trusted else promise.unit
        text += f"[allowance.{account}]\n"
        if promise.trusted:
            text += (
                f"# Kept only if the aggregator adds its noise: answers have none.\nunit = {_quoted(promise.unit)}\n"
            )
        text += f"epsilon = {promise.epsilon!r}\ndelta = {promise.delta!r}\n"
        text += f"adjacency = {_quoted(promise.adjacency)}\n" + ("answers = 1\n" if promise.trusted else "") + "\n"
    return text


def _quoted(text: str) -> str:
    """A text of TOML, which takes the escapes of JSON."""
    return json.dumps(str(text), ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(text: str) -> str:
    """A name as a key of TOML."""
    return text if re.fullmatch(r"[A-Za-z0-9_-]+", text) else _quoted(text)


def _plain(text: str) -> str:
    """A text for a comment: whoever wrote the invitation writes no other line than that one."""
    return printable(cut(text))
