"""What a journal says, in words of people; nothing that a letter said plays with their terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def printable(text: str) -> str:
    """A text on one line, in which nothing moves a terminal's cursor or changes its colours.

    Examples:
        >>> printable("plan\\x1b[31m\\n'north'")
        "plan [31m 'north'"
    """
    return "".join(letter if letter.isprintable() else " " for letter in text)


def said(line: Mapping[str, Any]) -> str:
    """A line of a journal in words.

    Examples:
        >>> said({"event": "refused", "why": "nobody has agreed to the question 'x\\x1b[2J'"})
        "refused: nobody has agreed to the question 'x [2J'"
    """
    return printable(_said(line))


def _said(line: Mapping[str, Any]) -> str:
    match line["event"]:
        case "charged":
            cost = line["guarantee"]
            whose = "if the aggregator adds its noise" if line["trusted"] else "by noise of this site"
            if "sum of" in line:
                whose = f"by noise that {line['sum of']} sites add together"
            return (
                f"charged table '{line['table']}': epsilon {cost['epsilon']:g}, delta {cost['delta']:g} for one "
                f"{cost['unit']} ({cost['adjacency']}), {whose}"
            )
        case "answered":
            return f"answered '{line['kind']}': {line['bytes']} bytes"
        case "answered in a secure sum":
            return f"answered '{line['kind']}': {line['bytes']} bytes"
        case "told the sum of masks":
            return f"told the sum of the masks of {line['counted']} of {line['of']} sites: {line['bytes']} bytes"
        case "answered again":
            return f"sent again what was answered before{_times(line)}"
        case "refused":
            return f"refused: {line['why']}{_times(line)}"
        case "begun":
            return "a question is being answered"
        case "waits for approval":
            return f"'{line['kind']}' waits for approval, for a table as agreed, or for room on the disk{_times(line)}"
        case "approved" | "denied":
            return f"{line['id']} was {line['event']} by {line['by']}"
        case "start":
            # All of it: who writes plans can make two, with other keys of sites, whose first 16 digits are the same.
            table = f"the table '{line['table']}' and " if "table" in line else ""
            return f"started, with {table}the plan {line['plan']}"
        case "stop":
            return "stopped"
        case "table":
            return f"table '{line['table']}' was read: fewer than {line['rows']} rows, digest {line['content'][:16]}"
        case "same table":
            return f"{line['by']} said that table '{line['table']}' is the table '{line['as']}'"
        case "newest state":
            return f"{line['by']} said that this copy of the state is the newest there is"
        case "new table":
            return f"{line['by']} said that table '{line['table']}' is a new one"
        case event:
            return str(event)


def _times(line: Mapping[str, Any]) -> str:
    return f" ({line['times']} times by now)" if line.get("times", 1) > 1 else ""
