"""The pages: what they name exists, and what is public is on them."""

import importlib.util
import re
import shlex
import shutil
import tomllib
from pathlib import Path

import numpy as np
import pytest

import scorethresh as st

ROOT = Path(__file__).parent.parent
HOME = "https://github.com/scorethresh/scorethresh"
PAGES = [
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "fields").glob("*.md")),
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
]


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
        if target.startswith(("https://", "http://", "/", "gallery/", "../gallery/")):
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


@pytest.fixture(scope="module")
def charts():
    pytest.importorskip("matplotlib")
    pytest.importorskip("PIL")
    spec = importlib.util.spec_from_file_location("charts", ROOT / "docs" / "charts.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_charts_show_the_figures_of_the_tables(charts):
    page = (ROOT / "docs" / "denoise_evidence.md").read_text(encoding="utf-8")
    psnr = charts.mean_psnr()
    for method, row in (("blend", r"\*\*blend\*\* \(default\)"), ("bm3d", "bm3d"), ("NL-means", "NL-means")):
        printed = re.search(rf"^\| {row} \| ([\d. |]+) \|", page, flags=re.M)[1].split(" | ")[:5]
        # Cells are rounded to 0.01, and so is their mean.
        assert [float(v) for v in printed] == pytest.approx([psnr[method][s] for s in (5, 10, 25, 50, 75)], abs=0.011)
    page = (ROOT / "docs" / "evidence.md").read_text(encoding="utf-8")
    regret = charts.mean_regret()
    for method in ("default", "score, paper's h", "universal"):
        printed = [float(v) - 1 for v in re.findall(rf"^ +{method} +([\d.]+) \(", page, flags=re.M)]
        assert printed == pytest.approx([regret[method][n] for n in sorted(regret[method])], abs=0.0006)


def test_the_charts_are_drawn(charts, tmp_path):
    charts.main(tmp_path)
    pages = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    for name in charts.CHARTS:
        assert (tmp_path / name).stat().st_size < 60_000
        assert f"(img/{name})" in pages
        assert (ROOT / "docs" / "img" / name).exists()


def commands():
    """Yield the commands that pages show after a dollar sign, with the page."""
    for page in PAGES:
        for block in re.findall(r"^```console\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.M | re.S):
            for line in re.findall(r"^\$ (scorethresh .*)$", block, flags=re.M):
                yield pytest.param(line, id=f"{page.stem}: {line}")


@pytest.fixture(scope="module")
def example_files(tmp_path_factory):
    """Files with the names that the commands use."""
    import soundfile
    import tifffile
    from PIL import Image

    folder = tmp_path_factory.mktemp("examples")
    rng = np.random.default_rng(0)
    clean = np.add.outer(40 * np.sin(np.arange(48) / 6), 40 * np.cos(np.arange(64) / 9)) + 128
    picture = np.clip(clean + rng.normal(0.0, 12.0, clean.shape), 0, 255).astype(np.uint8)
    (folder / "photos").mkdir()
    for name in ("noisy.png", "photo.png", "photos/a.png", "photos/b.png"):
        Image.fromarray(picture).save(folder / name)
    stack = (clean + rng.normal(0.0, 12.0, (4, 2, *clean.shape))).astype(np.float32)
    tifffile.imwrite(folder / "stack.tif", stack, photometric="minisblack")
    signal = 100 + 50 * np.sin(np.arange(600) / 30) + rng.normal(0.0, 5.0, 600)
    for name, column in (("ecg.csv", "lead_I"), ("spectrum.csv", "intensity")):
        table = np.column_stack([np.arange(600), signal])
        np.savetxt(folder / name, table, delimiter=",", header=f"t,{column}", comments="", fmt="%.2f")
    soundfile.write(folder / "speech.wav", signal / 300, 8000)
    np.save(folder / "image.npy", rng.poisson(clean))
    fits = pytest.importorskip("astropy.io.fits")
    fits.PrimaryHDU(rng.poisson(clean).astype(np.int32)).writeto(folder / "image.fits")
    np.save(folder / "coefficients.npy", rng.normal(size=1000) + 6 * (np.arange(1000) < 20))
    nibabel = pytest.importorskip("nibabel")
    volume = np.abs(100 + rng.normal(0.0, 10.0, (12, 24, 24)) + 10j * rng.normal(size=(12, 24, 24)))
    nibabel.Nifti1Image(volume.astype(np.float32), np.eye(4)).to_filename(folder / "brain.nii.gz")
    return folder


@pytest.mark.parametrize("command", list(commands()))
def test_commands_on_the_pages_run(command, example_files, tmp_path, monkeypatch, capsys):
    from scorethresh.cli import main

    shutil.copytree(example_files, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    assert main(shlex.split(command)[1:]) == 0, capsys.readouterr().err
    if "-o" in command:
        assert list(tmp_path.glob("clean*"))
