"""`federation data`: which data sets there are, where their originals are, and the files that are made from these."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from federation.contract.errors import InputError, writing
from scenarios.commands.options import AsJson, DataDirectory
from scenarios.commands.output import tell


def data(
    name: Annotated[str | None, Argument(metavar="NAME", help="A data set; without it all are listed.")] = None,
    source: Annotated[
        Path | None, Option("--from", metavar="FOLDER", help="Where its downloads lie, unpacked from archives.")
    ] = None,
    to: Annotated[
        Path | None, Option("--to", metavar="FILE", help="What to write; default: its file in the data directory.")
    ] = None,
    data_dir: DataDirectory = None,
    as_json: AsJson = False,
) -> None:
    """Say which data sets are there and where the others come from; make a data set's file from its downloads.

    Nothing is downloaded: originals have owners, whose licences are yours to read.
    """
    from scenarios.data.catalogue import directory_of, entry, names
    from scenarios.originals.originals import original, target

    folder = directory_of(data_dir)
    if source is not None and name is None:
        raise InputError("--from needs the name of a data set; federation data lists them")
    if to is not None and source is None:
        raise InputError("--to is for --from, the folder of the downloads")
    if name is None:
        sets = [known for each in names() if (known := entry(each)) is not None]
        listed = [{"name": one.name, "state": _state(one.file, folder), "file": one.file or "-"} for one in sets]
        missing = [one["name"] for one in listed if one["state"] == "missing"]
        where = f"in {folder}" if folder else "no data directory: name one with --data-dir or FEDERATION_DATA"
        text = [f"files: {where}", *([f"what a missing one needs: federation data {missing[0]}"] if missing else [])]
        tell(as_json, {"data": listed}, text=text)
        return
    known, how = original(name)
    if source is None:
        found = {
            "name": name,
            "state": _state(known.file, folder),
            "file": known.file,
            "original": known.origin,
            "address": known.url,
            "licence": known.licence,
            "downloads": how.files,
            "note": how.note,
        }
        lines = [f"{key}: {value}" for key, value in found.items() if value]
        tell(as_json, found, text=[*lines, f"next: federation data {name} --from FOLDER"], hidden=found)
        return
    if not source.is_dir():
        raise InputError(f"--from: there is no folder {source}; name the one with {how.files}")
    path = target(known, to, folder)
    with writing(path, "name another with --to"):
        how.save(source, path)
    record: dict[str, Any] = {"name": name, "file": str(path)}
    said = f"wrote {path}"
    if how.make is not None:  # what is copied is checked when it is read, which may take long
        table = known.read(path, hashes=[] if known.hashed is None else [known.hashed])
        record |= {"rows": len(table), "classes": list(table.classes)}
        said += f": {len(table)} rows"
    tell(as_json, record, hidden=record, text=[said, f"licence: {known.licence}"])


def _state(file: str | None, folder: Path | None) -> str:
    """Whether a data set can be used."""
    from scenarios.data.patterns import is_there

    if file is None:
        return "comes along"
    return "there" if folder is not None and is_there(folder / file) else "missing"
