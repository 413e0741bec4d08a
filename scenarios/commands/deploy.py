"""`federation deploy` and `federation collect`: the agreement with real sites, and the collection of their responses.

- `deploy` writes what the sites are asked to agree to, and shows their agreement.
- `collect` sends the queries of a deployment, learns and releases.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Exit, Option

from federation.contract.errors import InputError
from scenarios.commands.options import AsJson, DataDirectory, Settings
from scenarios.commands.output import remark, tell

if TYPE_CHECKING:
    from scenarios.deployment.folder import Folder


_DAY = 86_400  # seconds
_A_NAME = "a name of up to 63 letters a to z, digits, - and _, and begin with a letter or digit"
_MANY = 1000  # releases that are counted
_PUBLIC_FEATURES = (
    "features: this protocol protects labels alone, and takes all else in a row as public: a site must set "
    "public-features = true, or it answers nothing"
)


def deploy(
    scenario: Annotated[str, Argument(metavar="SCENARIO", help="A scenario file, or the folder of a deployment.")],
    folder: Annotated[
        Path | None, Argument(metavar="[DIR]", help="Folder of the deployment, which is made; nobody else may read it.")
    ] = None,
    superlink: Annotated[
        str | None, Option("--superlink", metavar="HOST:PORT", help="Where sites reach the SuperLink.")
    ] = None,
    sites: Annotated[str | None, Option("--sites", metavar="NAME,NAME,...", help="Names of the sites.")] = None,
    rows: Annotated[
        str | None,
        Option(
            "--rows",
            metavar="LEAST:MOST",
            help="Rows of a site, or of each of its bags; public. Default: parties.rows.",
        ),
    ] = None,
    bags: Annotated[
        int | None, Option("--bags", metavar="MOST", min=1, help="Bags of a site at most, where a column names them.")
    ] = None,
    second: Annotated[
        str | None,
        Option("--second", metavar="NAME", help="Who runs the second server, where the scenario says servers: two."),
    ] = None,
    closing: Annotated[
        float, Option("--closing", metavar="DAYS", min=0.01, help="After that sites answer no more.")
    ] = 90,
    hosts: Annotated[
        str | None,
        Option("--hosts", metavar="NAME_OR_IP,...", help="What the SuperLink's certificate is for, beside HOST."),
    ] = None,
    keys: Annotated[
        Path | None,
        Option("--keys", metavar="FOLDER", help="Folder with the NAME.pub files of all sites: seal the plan."),
    ] = None,
    settings: Settings = [],  # noqa: B006 - typer copies it
    data_dir: DataDirectory = None,
    as_json: AsJson = False,
) -> None:
    """Plan a federation of real sites; then, with the keys of all sites, seal the plan that they approve.

    First federation deploy SCENARIO DIR --superlink HOST:PORT --sites NAME,NAME, then federation deploy DIR --keys
    FOLDER. README.txt in DIR says what to type in between. With DIR and --hosts alone the certificate is made anew.
    """
    from scenarios.deployment.certificates import make_server
    from scenarios.deployment.folder import Folder

    first = {"--superlink": superlink, "--sites": sites, "--rows": rows, "--bags": bags, "--second": second}
    if folder is not None:
        _refuse({"--keys": keys}, "is for a folder that was made before: federation deploy DIR --keys FOLDER")
        _begin(scenario, folder, first, closing, _listed(hosts), settings, data_dir, as_json)
        return
    _refuse(first, "is for a new deployment, which needs a scenario and a folder: federation deploy SCENARIO DIR ...")
    known = Folder.opened(Path(scenario))
    if keys is not None:
        _seal(known, keys, as_json)
        return
    if hosts is None:
        raise InputError(
            f"name the folder of the sites' keys: federation deploy {scenario} --keys FOLDER; or what a new "
            f"certificate is for: federation deploy {scenario} --hosts HOST"
        )
    host = known.invitation.superlink.rpartition(":")[0]
    make_server(known.path, known.invitation.name, [host, *_listed(hosts)])
    text = ["made a new certificate; it lasts 398 days, and a SuperLink that runs must be started again"]
    tell(as_json, {"hosts": [host, *_listed(hosts)]}, text=text, hidden=["hosts"])


def _begin(
    scenario: str,
    folder: Path,
    given: Mapping[str, object],
    closing: float,
    hosts: list[str],
    settings: list[str],
    data_dir: Path | None,
    as_json: bool,
) -> None:
    from aggregator.contract.ledger import Budget
    from aggregator.exchange.app import promised
    from aggregator.exchange.exchange import affordable
    from scenarios.data.catalogue import is_file_name, public_path
    from scenarios.deployment.folder import INVITATION, README, make_folder
    from scenarios.deployment.site_texts import paid, who
    from scenarios.settings.schema import resolve

    lacking = [name for name in ("--superlink", "--sites") if not given[name]]
    if lacking:
        raise InputError(f"{lacking[0]}: missing; a deployment needs to know it from the beginning")
    resolved = resolve(scenario, settings)
    address = str(given["--superlink"])
    known = {
        "superlink": address,
        "sites": parsed_sites(str(given["--sites"])),
        "closing": int(time.time() + closing * _DAY),
        "rows": None if given["--rows"] is None else parsed_rows(str(given["--rows"])),
        "bags": given["--bags"],
        "second": None if given["--second"] is None else _named("--second", str(given["--second"])),
    }
    auxiliary = resolved.data.auxiliary
    public = public_path(auxiliary, data_dir) if is_file_name(auxiliary) else Path()
    made, found = make_folder(folder, resolved, public, known, [parsed_address(address), *hosts])
    names, second = [site.name for site in found.agreement.sites], found.agreement.second
    promises = [
        f"epsilon {one.epsilon:g}, delta {one.delta:g} per {one.unit}; {paid(found.agreement, one)}"
        for one in found.agreement.promises
    ]
    budget = Budget.of(None if resolved.privacy.budget is None else resolved.privacy.budget.model_dump())
    releases = None if budget is None else affordable(promised(found.agreement), budget, _MANY)
    asks = [f"{one.kind} x {one.times}" for one in found.agreement.asked]
    record = {
        "directory": str(made.path),
        "sites": names,
        "asks": asks,
        "promises": promises,
        "roles": who(found.agreement),
        "releases": releases,
        "public_features": found.agreement.public_features,
        "second": None if second is None else second.name,
        "remarks": list(found.remarks),
    }
    alone = "" if second is None else f", and {INVITATION} alone to {second.name}"
    text = [
        *(f"hint: {remark}" for remark in found.remarks),
        f"wrote {made.path}/: {INVITATION}, {found.agreement.public.file}, {README}",
        f"asks each of {len(names)} sites: {', '.join(asks)}",
        *(f"promises: {promise}" for promise in promises),
        *([] if releases is None else [_lasts(releases)]),
        *([_PUBLIC_FEATURES] if found.agreement.public_features else []),
        f"next: send {INVITATION} and {found.agreement.public.file} to {', '.join(names)}{alone}; "
        f"{made.path / README} says what follows, and who has, sees and is trusted with what",
    ]
    tell(as_json, record, text=text, hidden=record)


def _lasts(releases: int) -> str:
    """How many releases the budget pays for."""
    if releases == 1:
        return "budget: for one release"
    most = f"{_MANY} releases or more" if releases == _MANY else f"{releases} releases"
    return f"budget: for {most}; after the first, federation collect DIR --new-exchange asks about the rows of that day"


def _seal(folder: Folder, keys: Path, as_json: bool) -> None:
    from aggregator.exchange.app import AGREEMENT
    from federation.signed_messages.keys import fingerprint

    agreement = folder.seal(keys)
    found = [
        {"site": one.name, "fingerprint": fingerprint(key)}
        for one, key in zip(agreement.members, agreement.keys, strict=True)
    ]
    second = agreement.second
    record = {
        "plan": str(folder.path / AGREEMENT),
        "digest": agreement.digest.hex(),
        "aggregator": fingerprint(agreement.aggregator_key),
        "sites": found,
        "masks": None if second is None else second.masks,
    }
    text = [
        *(f"{one['fingerprint']}  {one['site']}" for one in found),
        f"{record['aggregator']}  (the key of this deployment)",
        *([] if second is None else [f"{second.masks}  (the key for masks that '{second.name}' reads out to sites)"]),
        f"digest of the plan: {record['digest']}",
        f"next: compare these with them by telephone, send them {record['plan']}, and type: federation collect "
        f"{folder.path}",
    ]
    tell(as_json, record, text=text, hidden=record)


def _refuse(given: Mapping[str, object], why: str) -> None:
    """Refuse options that are for the other step. Raises `InputError`."""
    for name, value in given.items():
        if value is not None:
            raise InputError(f"{name} {why}")


def _listed(text: str | None) -> list[str]:
    return [part.strip() for part in (text or "").split(",") if part.strip()]


def parsed_sites(text: str) -> tuple[str, ...]:
    """NAME,NAME,... as names that files can have. Raises `InputError` for others, and for two that are alike.

    Examples:
        >>> parsed_sites("north, south")
        ('north', 'south')
    """
    names = tuple(_named("--sites", name) for name in _listed(text))
    if not names or len({name.lower() for name in names}) < len(names):
        raise InputError(f"--sites must be different names with commas between, got {text!r:.80}")
    return names


def _named(option: str, text: str) -> str:
    """Return a name that files can have. Raises `InputError` for others."""
    from federation.signed_messages.agreement import Member

    try:
        return Member(name=text).name
    except ValueError:
        raise InputError(f"{option}: {text!r:.80} must be {_A_NAME}") from None


def parsed_rows(text: str) -> tuple[int, int]:
    """LEAST:MOST as two whole numbers from 1. Raises `InputError` for anything else.

    Examples:
        >>> parsed_rows("50:5000")
        (50, 5000)
    """
    least, _, most = text.partition(":")
    if not (least.isdecimal() and most.isdecimal() and 1 <= int(least) <= int(most)):
        raise InputError(f"--rows must be LEAST:MOST, two whole numbers from 1 such as 50:5000, got '{text}'")
    return int(least), int(most)


def parsed_address(text: str) -> str:
    """The host of HOST:PORT. Raises `InputError` for anything else.

    Examples:
        >>> parsed_address("link.example.org:9092")
        'link.example.org'
    """
    host, _, port = text.rpartition(":")
    if not host or any(c.isspace() for c in text) or not (port.isdecimal() and 0 < int(port) < 1 << 16):
        raise InputError(f"--superlink must be HOST:PORT, such as link.example.org:9092, got '{text}'")
    return host


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
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd]?)", text.strip())
    if not found or float(found[1]) == 0:
        raise InputError(f"{option} must be a time above zero such as 90s, 10m, 2h or 3d, got '{text}'")
    return float(found[1]) * _SECONDS[found[2]]
