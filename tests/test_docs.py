"""The pages: what they name exists, and what is public is on them."""

import re
import tomllib
from pathlib import Path

import pytest

import scorethresh as st

ROOT = Path(__file__).parent.parent
HOME = "https://github.com/scorethresh/scorethresh"
PAGES = [*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]


def anchors(page):
    """Return the anchors that GitHub and MyST give to the headings of a page."""
    prose = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    headings = re.findall(r"^#+ (.*)$", prose, flags=re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        target = link.removeprefix(f"{HOME}/blob/main/").replace("https://raw.githubusercontent.com", "")
        base = ROOT if target != link else page.parent
        if target.startswith(("https://", "http://", "/", "gallery/")):
            continue
        name, _, anchor = target.partition("#")
        found = base / name if name else page
        assert found.exists(), f"{page.name}: {link}"
        assert not anchor or anchor in anchors(found), f"{page.name}: {link}"


def test_the_readme_has_absolute_links_only():
    """PyPI shows the README without the repository around it."""
    links = re.findall(r"\]\(([^)\s]+)\)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert len(links) > 10
    assert [link for link in links if not link.startswith("https://")] == []


def test_the_api_page_lists_every_public_name():
    listed = set(re.findall(r"^   (\w+)$", (ROOT / "docs" / "api.md").read_text(encoding="utf-8"), flags=re.M))
    assert set(st.__all__) - listed == set()


def test_files_and_tests_named_on_the_papers_page_exist():
    text = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
    named = re.findall(r"`(tests/\w+\.py)::(\w+)`", text)
    assert len(named) > 15
    for file, test in named:
        assert re.search(rf"^def {test}\(", (ROOT / file).read_text(encoding="utf-8"), flags=re.M), f"{file}::{test}"
    places = re.findall(r"`((?:risk|rules|select|papers)/[\w./]*)`(?:: `(\w+)`)?", text)
    assert len(places) > 15
    for place, name in places:
        path = ROOT / place if place.startswith("papers") else ROOT / "src" / "scorethresh" / place
        files = sorted(path.glob("*.py")) if path.is_dir() else [path]
        assert all(file.exists() for file in files), place
        definition = rf"^(?:class|def) {name}\b"
        assert not name or any(re.search(definition, file.read_text(encoding="utf-8"), flags=re.M) for file in files)


def test_version_and_home_are_the_same_everywhere():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {project['version']}\n" in citation
    assert f'\nrepository-code: "{HOME}"\n' in citation
    assert all(url.startswith(HOME) for url in project["urls"].values())
