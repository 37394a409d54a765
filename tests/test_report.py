"""The report page: what it holds, and what it does in a browser."""

import base64
import dataclasses
import html
import io
import json
import re
import shutil
import struct

import matplotlib.image
import numpy as np
import pytest

import scorethresh as st
from scorethresh.viz import report
from scorethresh.viz.pictures import png
from scorethresh.viz.report import FACTORS, write_report


def noisy(shape=(96, 128), seed=1):
    rng = np.random.default_rng(seed)
    y = rng.normal(100.0, 10.0, shape)
    y[tuple(slice(n // 4, n // 2) for n in shape[:2])] += 80.0
    return y + 20 * np.sin(np.arange(y.size).reshape(shape) / 7)


def written(path, y, denoiser, found=None):
    write_report(path, y, denoiser, found or denoiser.run(y))
    text = path.read_text(encoding="utf-8")
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)[1]
    return text, json.loads(data)


def size_of(picture):
    """Rows, columns and colours of the PNG file in an address."""
    content = base64.b64decode(picture.removeprefix("data:image/png;base64,"))
    columns, rows, _, kind = struct.unpack(">IIBB", content[16:26])
    return rows, columns, {0: 1, 2: 3}[kind]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A file, its text, its data, and what was found."""
    path = tmp_path_factory.mktemp("report") / "page.html"
    denoiser = st.Denoiser(sigma=10.0, choose="bands", levels=3)
    y = noisy()
    found = denoiser.run(y)
    return path, *written(path, y, denoiser, found), found


def test_every_address_is_in_the_page(page):
    text = page[1].replace("http://www.w3.org/2000/svg", "")  # a name, not an address
    assert "://" not in text
    assert not re.search(r'(src|href)="(?!data:)', text)
    assert "{{" not in text


def test_summary_and_bands_have_the_numbers_found(page):
    _, text, data, found = page
    assert f"{found.predicted_mse:.4g} ± {found.stderr:.2g}, in units of the data squared" in text
    assert f"{found.predicted_psnr():.2f} dB" in text
    assert [band["name"] for band in data["bands"]] == [band.name for band in found.bands]
    for shown, band in zip(data["bands"], found.bands, strict=True):
        assert shown["t"][shown["at"]] == pytest.approx(band.threshold / band.sigma, rel=1e-3)
        k = list(band.curve.thresholds).index(band.threshold)
        assert shown["risk"][shown["at"]] == pytest.approx(
            band.curve.risk[k] / band.curve.size / band.sigma**2, rel=1e-3
        )
        assert f"<td>{band.name}</td>" in text


def test_the_slider_has_the_estimate_at_the_thresholds_chosen(page):
    _, _, data, found = page
    trials = data["trials"]
    assert [trial["factor"] for trial in trials] == list(FACTORS)
    chosen = trials[FACTORS.index(1.0)]
    assert chosen["picture"] == data["after"]
    assert chosen["psnr"] == pytest.approx(found.predicted_psnr(), abs=0.05)
    assert len({trial["picture"] for trial in trials}) == len(FACTORS)


@pytest.mark.parametrize("colours", [1, 3])
def test_png_is_read_back_by_another_program(colours, rng):
    pixels = rng.integers(0, 256, (7, 13, colours)).astype(np.uint8)
    read = matplotlib.image.imread(io.BytesIO(png(pixels)), format="png")
    np.testing.assert_array_equal(np.rint(255 * read).reshape(pixels.shape), pixels)


@pytest.mark.slow
def test_the_code_on_the_page_gives_the_same_estimate(tmp_path):
    y = noisy((64, 64, 2))
    mask = np.zeros((64, 64), dtype=bool)
    mask[3, 3] = True
    denoiser = st.Denoiser(
        sigma=np.array([9.0, 11.0]), choose="bands", rule=st.Soft(), method=st.Sure(), channel_axis=-1, mask=mask
    )
    found = denoiser.run(y)
    text, _ = written(tmp_path / "page.html", y, denoiser, found)
    code = html.unescape(re.search("<code>(.*?)</code>", text, re.DOTALL)[1])
    assert "shape (64, 64) and dtype bool" in code
    places = {"y": y, "mask": mask}
    exec(re.sub(r"^(y|mask) = \.\.\.", r"\1 = \1", code, flags=re.MULTILINE), places)
    np.testing.assert_array_equal(places["found"].estimate, found.estimate)


@pytest.mark.parametrize(
    ("y", "options"),
    [
        (noisy((300,)), {}),
        (noisy((6000,)).astype(np.float32), {"choose": "bands"}),
        (noisy((200, 2)), {"channel_axis": 1, "choose": "bands"}),
        (noisy((8, 16, 16)), {"choose": "bands"}),
        (noisy((3, 40, 40)), {"channel_axis": 0, "choose": "global"}),
        (noisy((40, 40)) * (1 + 0.1j), {"choose": "bands"}),
        (noisy((40, 40)).round().astype(np.uint8), {"noise": "poisson", "choose": "bands"}),
        (np.where(noisy((40, 40)) > 190, np.nan, noisy((40, 40))), {"sigma": 10.0, "choose": "bands"}),
        (np.zeros((40, 40)), {}),
        (np.random.default_rng(0).normal(size=(40, 40)), {"sigma": 5.0, "choose": "bands"}),
        (noisy((1, 40)), {"sigma": 10.0, "choose": "bands"}),
    ],
)
def test_whatever_can_be_denoised_has_a_page(y, options, tmp_path):
    text, data = written(tmp_path / "page.html", y, st.Denoiser(**{"levels": 2, **options}))
    kind = "svg+xml" if data["signal"] else "png"
    assert data["before"].startswith(f"data:image/{kind};base64,")
    assert not re.search(r"\bnan\b", re.sub('base64,[^"]*', "", text))


def test_of_large_data_the_middle_is_shown(tmp_path, monkeypatch):
    monkeypatch.setitem(report.MOST_SHOWN, 2, (32, 64))
    y = noisy((96, 128))
    text, data = written(tmp_path / "page.html", y, st.Denoiser(sigma=10.0, choose="bands"))
    assert "entries 32 to 63 of 96, 32 to 95 of 128" in text
    assert size_of(data["before"]) == (32, 64, 1)


@pytest.mark.parametrize("channel_axis", [None, -1])
@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("channels", [3, 4])
def test_colours_are_shown_with_or_without_their_axis(channels, gaps, channel_axis, tmp_path):
    """As `plot_denoised` does. Once, without the axis, a picture was taken for a volume and one row of it shown."""
    y = noisy((48, 64, channels))
    if gaps:
        y[3:5, 3:5] = np.nan
    denoiser = st.Denoiser(sigma=10.0, choose="bands", levels=2, channel_axis=channel_axis)
    found = denoiser.run(y)
    _, data = written(tmp_path / "page.html", y, denoiser, found)
    pictures = [data["before"], data["after"], *(trial["picture"] for trial in data["trials"])]
    assert [size_of(picture) for picture in pictures] == [(48, 64, 3)] * (2 + len(FACTORS))
    assert data["trials"][FACTORS.index(1.0)]["picture"] == data["after"]


@pytest.mark.parametrize("shape", [(5, 48, 64), (48, 64, 5)])
def test_other_channels_are_shown_by_the_middle_one(shape, tmp_path):
    axis = shape.index(5)
    _, data = written(
        tmp_path / "page.html", noisy(shape), st.Denoiser(sigma=10.0, choose="bands", levels=2, channel_axis=axis)
    )
    assert size_of(data["before"]) == size_of(data["trials"][0]["picture"]) == (48, 64, 1)


@pytest.mark.parametrize("axis", [None, 0, -1])
def test_missing_entries_do_not_set_the_scale(axis, tmp_path):
    """A detector's fill value is no brightness; and a part with nothing in it can be shown."""
    y = noisy((60, 60)) if axis is None else np.stack([noisy((60, 60))] * 2, axis)
    mask = np.zeros((60, 60), dtype=bool)
    mask[20:40, 20:40] = True
    (y if axis is None else np.moveaxis(y, axis, 0))[..., 20:40, 20:40] = -9999
    options = {"sigma": 10.0, "choose": "bands", "levels": 1, "channel_axis": axis, "mask": mask}
    text, data = written(tmp_path / "page.html", y, st.Denoiser(**options))
    assert not re.search("Black is -", text)
    assert len(data["trials"]) == len(FACTORS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(report.MOST_SHOWN, 2, (20, 20))
        text, data = written(tmp_path / "page.html", y, st.Denoiser(**options))
    assert "Black is 0, white 1." in text
    assert data["trials"] == []


def test_text_is_escaped(tmp_path):
    y = noisy((40,))
    denoiser = st.Denoiser(sigma=10.0, choose="bands")
    found = denoiser.run(y)
    bands = [dataclasses.replace(b, wavelet=f"</script><b>{{{{code}}}} {b.wavelet}") for b in found.bands]
    text, data = written(tmp_path / "page.html", y, denoiser, dataclasses.replace(found, bands=tuple(bands)))
    assert "<b>" not in text
    assert data["bands"][0]["name"] == bands[0].name
    assert "&lt;b&gt;{{code}}" in text


def test_data_of_another_shape_are_refused(tmp_path, page):
    with pytest.raises(ValueError, match=r"y must have the shape of the estimate, \(96, 128\), got \(5,\)"):
        write_report(tmp_path / "page.html", np.zeros(5), st.Denoiser(), page[3])


def test_a_page_that_cannot_be_written_leaves_the_old_one(tmp_path, monkeypatch):
    path = tmp_path / "page.html"
    path.write_text("old")
    monkeypatch.setattr(report.Path, "replace", lambda *_: (_ for _ in ()).throw(OSError("full")))
    y = noisy((40,))
    with pytest.raises(OSError, match="full"):
        written(path, y, st.Denoiser(sigma=10.0, choose="bands"))
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [("page.html", "old")]


@pytest.fixture(scope="module")
def browser():
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium, which drives the browser, is not installed")
    programs = {name: shutil.which(name) for name in ("chromium", "chromedriver")}
    missing = [name for name, found in programs.items() if found is None]
    if missing:
        pytest.skip(
            f"no browser to try the page in: {' and '.join(missing)} missing (Debian: chromium chromium-driver)"
        )
    options = webdriver.ChromeOptions()
    options.binary_location = programs["chromium"]
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1100,900"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(programs["chromedriver"]))
    yield driver
    driver.quit()


@pytest.fixture
def opened(browser, page):
    """The page, opened from its file; at the end the console must be empty."""
    browser.get(page[0].as_uri())
    yield browser
    assert browser.get_log("browser") == []
    fetched = browser.execute_script("return performance.getEntriesByType('resource').map(e => e.name)")
    assert [name for name in fetched if not name.startswith("data:")] == []


def test_the_divider_follows_keys_and_pointer(opened):
    from selenium.webdriver import ActionChains, Keys

    pair, divider = opened.find_element("id", "pair"), opened.find_element("id", "divider")

    def cut():
        clip = opened.find_element("id", "after").value_of_css_property("clip-path")
        return float(re.search(r"([\d.]+)%\)", clip)[1])

    assert cut() == 50
    divider.send_keys(Keys.HOME)
    assert cut() == 0
    divider.send_keys(Keys.ARROW_RIGHT)
    assert cut() == 0.5
    drag = ActionChains(opened).move_to_element(pair).click_and_hold()
    drag.move_by_offset(pair.size["width"] // 4, 0).release().move_by_offset(-50, 0).perform()
    assert cut() == pytest.approx(75, abs=1)


def test_the_threshold_slider_changes_the_picture_and_the_prediction(opened, page):
    from selenium.webdriver import Keys

    data = page[2]
    slider, picture, told = (opened.find_element("id", name) for name in ("factor", "trial", "told"))
    assert picture.get_attribute("src") == data["after"]
    slider.send_keys(Keys.END)
    assert picture.get_attribute("src") == data["trials"][-1]["picture"] != data["after"]
    assert picture.get_property("naturalWidth") == 128
    assert told.text.startswith(
        f"3 × the thresholds chosen: predicted PSNR {data['trials'][-1]['psnr']:.2f} dB, rms error"
    )
    slider.send_keys(Keys.ARROW_LEFT)
    assert told.text.startswith("2 × ")


def test_a_risk_curve_answers_to_pointer_and_keys(opened, page):
    from selenium.webdriver import ActionChains, Keys

    boxes = opened.find_elements("css selector", "#curves > div")
    band = page[2]["bands"][0]
    assert len(boxes) == len(page[2]["bands"])
    svg, told = boxes[0].find_element("css selector", "svg"), boxes[0].find_element("css selector", "p")

    def threshold():
        assert re.fullmatch(r"threshold \S+, risk \S+ ± \S+, degrees of freedom \S+", told.text)
        return float(told.text.split()[1].strip(","))

    assert threshold() == pytest.approx(band["t"][band["at"]], rel=0.01)
    opened.execute_script("arguments[0].scrollIntoView({block: 'center'})", svg)
    ActionChains(opened).move_to_element_with_offset(svg, svg.size["width"] // 2 - 12, 0).perform()
    assert threshold() > 0.9 * band["t"][-1]
    ActionChains(opened).move_to_element(opened.find_element("css selector", "#risks h2")).perform()
    assert threshold() == pytest.approx(band["t"][band["at"]], rel=0.01)
    opened.execute_script("arguments[0].focus()", svg)
    svg.send_keys(Keys.ARROW_RIGHT)
    assert threshold() > band["t"][band["at"]]


def test_the_page_prints(opened):
    """Both pictures side by side, none cut off; the sliders are left out."""
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    before, after, divider = (opened.find_element("id", name) for name in ("before", "after", "divider"))
    assert not divider.is_displayed()
    assert after.value_of_css_property("clip-path") == "none"
    assert after.location["x"] >= before.location["x"] + before.size["width"]
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    assert len(opened.print_page()) > 10_000


@pytest.mark.parametrize("y", [noisy((300,)), np.zeros((20, 20))], ids=["signal", "constant"])
def test_signals_and_data_without_noise_open_without_complaint(y, browser, tmp_path):
    written(tmp_path / "page.html", y, st.Denoiser())
    browser.get((tmp_path / "page.html").as_uri())
    assert browser.get_log("browser") == []
    assert browser.find_element("id", "before").get_property("naturalWidth") > 0
    assert browser.find_element("id", "risks").is_displayed() == bool(y.any())


def test_a_narrow_window_needs_no_sideways_scrolling(opened):
    opened.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": 380, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    )
    wide = opened.execute_script("return document.documentElement.scrollWidth")
    opened.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert wide <= 380


@pytest.mark.parametrize("shape", [(1,), (1, 1)])
def test_one_entry_has_a_page(tmp_path, shape):
    """Its standard error is infinite, which JSON has no word for."""
    denoiser = st.Denoiser(sigma=1.0)
    y = np.full(shape, 3.0)
    write_report(tmp_path / "page.html", y, denoiser, denoiser.run(y))
    assert (tmp_path / "page.html").exists()
