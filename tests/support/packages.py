"""Packages that a test installs: a module beside the description that an installation leaves."""

CAUSE = (
    r"the package 'Broken-Pack' \(federation.{}: broken_pack:{}\) cannot be imported: RuntimeError: half installed; "
    "repair or remove that package"
)


def install(folder, name, code, entries):
    """Put a package into a folder to import from: its code, and entry points as lines by their group."""
    (folder / f"{name.lower().replace('-', '_')}.py").write_text(code)
    describe(folder, name, entries)


def describe(folder, name, entries):
    """Leave what an installation leaves beside the code of a package."""
    described = folder / f"{name.lower().replace('-', '_')}-1.dist-info"
    described.mkdir()
    (described / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
    groups = [f"[{group}]\n" + "\n".join(lines) for group, lines in entries.items()]
    (described / "entry_points.txt").write_text("\n\n".join(groups) + "\n")


def install_broken(folder):
    """Put a package that cannot be imported into a folder, with a protocol and a question."""
    entries = {
        "federation.protocols": ["broken = broken_pack:Broken"],
        "federation.queries": ["votes_of_theirs = broken_pack:answer"],
    }
    install(folder, "Broken-Pack", "raise RuntimeError('half installed')\n", entries)
