"""The site is built without a warning, and shows everything without a network."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built pages."""
    for module in ("sphinx", "myst_parser", "pydata_sphinx_theme"):
        pytest.importorskip(module, reason="the site needs pip install '.[docs]'")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", "-d", str(folder / "trees")]
    built = subprocess.run(
        [*command, "docs", str(folder / "html")], cwd=ROOT, capture_output=True, text=True, timeout=500
    )
    assert built.returncode == 0, built.stderr[-3000:]
    return folder / "html"


def test_it_is_built_without_warnings_and_shows_formulas(site: Path) -> None:
    assert "<math" in (site / "protocols" / "mean_operator.html").read_text(encoding="utf-8")


def test_public_names_are_described_with_examples(site: Path) -> None:
    page = (site / "reference" / "federation.mechanisms.html").read_text(encoding="utf-8")
    for name in ("calibrate_noise", "compose", "gaussian_delta"):
        assert f'id="federation.mechanisms.{name}"' in page
    assert "doctest" in page


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        loaded = re.findall(r'<(?:script|img|iframe)[^>]+src="(https?:[^"]+)"', text)
        loaded += re.findall(r'<link[^>]+rel="(?:stylesheet|preload)"[^>]+href="(https?:[^"]+)"', text)
        assert not loaded, f"{page}: {loaded}"
