"""`federation collect`: ask the sites of a deployment, learn and release."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

from typer import Argument, Exit, Option

from scenarios.commands.lines import remark
from scenarios.commands.options import AsJson
from scenarios.commands.output import tell

_SECONDS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def collect_command(
    folder: Annotated[Path, Argument(metavar="DIR", help="Folder that federation deploy has made.")],
    patience: Annotated[
        str, Option("--patience", metavar="TIME", help="How long a site may take for a question, such as 90s, 10m, 2h.")
    ] = "10m",
    wait: Annotated[
        str, Option("--wait", metavar="TIME", help="How long sites are waited for in all, and for their approval.")
    ] = "1h",
    fresh: Annotated[
        bool, Option("--new-exchange", help="Ask again, though there is a release; it spends privacy again.")
    ] = False,
    status: Annotated[bool, Option("--status", help="Say how far it is; ask nobody.")] = False,
    as_json: AsJson = False,
) -> None:
    """Ask the sites of a deployment, learn from their answers and release, or go on where it was interrupted.

    Nobody is asked twice. Sites that are silent or answer nonsense are left out, as long as enough of them answer.
    """
    from scenarios.deployment.collecting import Patience, collect, spent_lines, totals, written
    from scenarios.deployment.collecting import status as of_exchanges
    from scenarios.deployment.folder import Folder

    seconds = Patience(parsed_time("--patience", patience), parsed_time("--wait", wait))
    known = Folder.opened(folder)
    if status:
        found, spent = of_exchanges(known), totals(known)
        lines = [f"exchange {one['exchange']}: {one['status']}; {one['progress']}" for one in found]
        lines = lines or ["nobody has been asked"]
        text = [*lines, *(f"spent or set aside: {line}" for line in spent_lines(spent))]
        text += [f"journal of {site}, its last line known here: {head}" for site, head in known.journals.items()]
        record = {"exchanges": found, "spent": spent, "journals": known.journals}
        tell(as_json, record, text=text, hidden=[*record])
        return
    try:
        outcome = collect(known, seconds, fresh, remark)
    except KeyboardInterrupt:
        remark(f"hint: federation collect {folder} goes on where this was; nobody is asked twice")
        raise
    files = written(known, outcome)
    before = outcome["status"] == "released already"
    if before:
        text = [f"exchange {outcome['exchange']} was released already; nothing was asked, nothing was spent"]
    else:
        text = [f"spent: {line}" for line in spent_lines(outcome.get("spent", ()))]
        if int(str(outcome["exchange"])) > 1:
            text += [f"spent by all exchanges: {line}" for line in spent_lines(outcome.get("spent_in_all", ()))]
    text += [f"next: federation predict {path} FILE" for path in files if path.suffix == ".npz"]
    if files:
        text.append(f"page for whoever must sign: federation report {files[0].parent}")
    if "why" in outcome:
        for line in str(outcome["why"]).splitlines():
            remark(f"error: {line}")
        remark(f"hint: federation collect {folder} goes on with it; nobody is asked twice")
    record = {**outcome, "files": [str(path) for path in files]}
    told = [f"{'there is' if before else 'wrote'} {path}" for path in files]
    tell(as_json, record, text=[*told, *text], hidden=record)
    if outcome.get("exit_code"):
        raise Exit(int(outcome["exit_code"]))


def parsed_time(option: str, text: str) -> float:
    """Seconds of a time such as 90s, 10m, 2h or 3d. Raises `InputError` for anything else.

    Examples:
        >>> parsed_time("--wait", "1.5h")
        5400.0
    """
    from federation.contract.errors import InputError

    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd]?)", text.strip())
    if not found or float(found[1]) == 0:
        raise InputError(f"{option} must be a time above zero such as 90s, 10m, 2h or 3d, got '{text}'")
    return float(found[1]) * _SECONDS[found[2]]
