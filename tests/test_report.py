"""The report page: what it holds, and what it does in a browser."""

import base64
import dataclasses
import html
import io
import json
import re
import struct

import matplotlib.image
import numpy as np
import pytest

import scorethresh as st
from helpers import browser_or_skip
from scorethresh.viz import views
from scorethresh.viz.pictures import png
from scorethresh.viz.report import energies_of, write_report
from scorethresh.viz.residual import autocorrelation


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
    assert "default-src 'none'" in text


def test_the_page_has_the_numbers_found(page):
    _, text, data, found = page
    root = found.predicted_mse**0.5
    noise, after = re.search(r"from σ = (\S+) to an error of (\S+)", text).groups()
    assert float(noise) == pytest.approx(10.0, rel=0.01)
    assert float(after) == pytest.approx(root, rel=0.1)
    assert found.verdict in html.unescape(text)
    shown = [band for scale in data["scales"] for band in scale["bands"]]
    assert [scale["level"] for scale in data["scales"]] == [1, 2, 3]
    assert {band["name"] for band in shown} == {band.name for band in found.bands}
    bands = {band.name: band for band in found.bands}
    for entry in shown:
        band = bands[entry["name"]]
        assert entry["t"][entry["at"]] == pytest.approx(band.threshold / band.sigma, rel=1e-3)
        k = list(band.curve.thresholds).index(band.threshold)
        assert entry["risk"][entry["at"]] == pytest.approx(
            band.curve.risk[k] / band.curve.size / band.sigma**2, rel=1e-3
        )
        assert f"<td>{band.name}</td>" in text


@pytest.mark.parametrize("kind", ["white", "counts", "complex", "gaps"])
def test_the_error_at_other_strengths_is_that_of_the_mixture(kind):
    """Against the truth, given the error at full strength. The energy of 96^2 entries of noise varies by 1.5%."""
    rng = np.random.default_rng(3)
    clean = np.full((96, 96), 40.0)
    clean[24:72, 24:72] = 120.0
    options, y = {"sigma": 10.0}, clean + rng.normal(0.0, 10.0, clean.shape)
    if kind == "counts":
        options, y = {"noise": "poisson"}, rng.poisson(clean)
    if kind == "complex":
        y = y + 1j * rng.normal(0.0, 10.0, clean.shape)
    known = np.ones(clean.shape, bool)
    if kind == "gaps":
        known[40:60, 10:50] = False
        y[~known] = np.nan
    denoiser = st.Denoiser(choose="bands", **options)
    found = denoiser.run(y)
    energies = energies_of(y, denoiser, found)
    assert energies.at_strength(1.0) == found.predicted_mse

    def error_of(estimate):
        return np.mean(np.abs(estimate - clean)[known] ** 2) / (2 if kind == "complex" else 1)

    energies = energies._replace(error=error_of(found.estimate))
    for strength in (0.0, 0.5, 0.8):
        true = error_of((1 - strength) * y + strength * found.estimate)
        assert energies.at_strength(strength) == pytest.approx(true, abs=4 * 0.015 * energies.noise * (1 - strength))


def test_autocorrelation_agrees_with_the_definition(rng):
    a = rng.normal(size=(3, 40, 50))
    a[1, 5:9, 7] = np.nan
    found = autocorrelation(a, 0)
    for name, axis in (("columns", 1), ("rows", 2)):
        assert found.axes[name].size == 21
        for lag in (1, 7):
            first, second = np.split(np.moveaxis(a, axis, 0), [a.shape[axis] - lag])[0], np.moveaxis(a, axis, 0)[lag:]
            expected = np.nanmean(first * second) / np.nanmean(a**2)
            assert found.axes[name][lag] == pytest.approx(expected, rel=1e-12)
    assert found.stderr == pytest.approx((3 * 40 * 50 - 4) ** -0.5, rel=0.001)
    assert found.white
    assert autocorrelation(np.zeros((5, 5)), None) is None


def test_blurred_noise_is_called_correlated(rng):
    from scipy.ndimage import gaussian_filter

    found = autocorrelation(gaussian_filter(rng.normal(size=(64, 64)), (0.0, 0.7)), None)
    name, lag, value = found.strongest
    # The autocorrelation of a Gaussian of width s is one of width s sqrt(2).
    assert (name, lag, found.white) == ("rows", 1, False)
    assert value == pytest.approx(np.exp(-1 / (4 * 0.7**2)), abs=0.08)


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
    for view in data["views"]:
        for name in ("before", "after", "removed", "error"):
            assert view[name].startswith("data:image/png;base64,") != data["signal"]
    assert data["signal"] == (y.ndim == 1 or y.shape == (200, 2))
    assert not re.search(r"\bnan\b", re.sub('base64,[^"]*', "", text))


def test_of_large_data_the_middle_is_shown(tmp_path, monkeypatch):
    monkeypatch.setitem(views.MOST_SHOWN, 2, (32, 64))
    y = noisy((96, 128))
    text, data = written(tmp_path / "page.html", y, st.Denoiser(sigma=10.0, choose="bands"))
    assert "the middle: rows 32 to 63 of 96 and columns 32 to 95 of 128" in text
    assert [size_of(data["views"][0][k]) for k in ("before", "removed", "error")] == [(32, 64, c) for c in (1, 1, 3)]


def test_slices_of_a_volume_are_spread_over_it(tmp_path):
    y = np.random.default_rng(0).normal(size=(40, 24, 32))
    text, data = written(tmp_path / "page.html", y, st.Denoiser(sigma=1.0, choose="bands", levels=2))
    labels = [view["label"] for view in data["views"]]
    assert (labels[0], labels[-1], len(labels)) == ("slice 2 of 40", "slice 39 of 40", 12)
    assert "12 of 40 slices" in text
    assert size_of(data["views"][3]["after"]) == (24, 32, 1)
    assert len({view["after"] for view in data["views"]}) == 12


def test_the_signal_on_the_page_is_that_of_the_data(tmp_path):
    y = noisy((200, 2))
    denoiser = st.Denoiser(choose="bands", channel_axis=1)
    found = denoiser.run(y)
    _, data = written(tmp_path / "page.html", y, denoiser, found)
    assert [view["label"] for view in data["views"]] == ["channel 1 of 2", "channel 2 of 2"]
    for k, view in enumerate(data["views"]):
        arrays = (y[:, k], found.estimate[:, k], (y - found.estimate)[:, k], np.sqrt(found.error_map()))
        for name, a in zip(("before", "after", "removed", "error"), arrays, strict=True):
            np.testing.assert_allclose(np.frombuffer(base64.b64decode(view[name]), "<f4"), a, rtol=1e-5, atol=1e-4)


def test_a_stack_has_a_view_and_a_row_for_each_part(tmp_path):
    ys = [noisy((48, 64), seed) for seed in range(3)]
    denoiser = st.Denoiser(sigma=10.0, choose="bands", levels=2)
    found = [denoiser.run(y) for y in ys]
    write_report(tmp_path / "page.html", ys, denoiser, found, part_names=["a", "<b>", "c"])
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    data = json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])
    assert [view["label"] for view in data["views"]] == ["a", "<b>", "c"]
    assert data["start"] == 1
    assert [e[1] for e in data["energies"]] == pytest.approx([one.predicted_mse for one in found], rel=1e-5)
    assert "<td>&lt;b&gt;</td>" in text
    with pytest.raises(ValueError, match=r"one result for each of the 2 arrays in y, got 3"):
        write_report(tmp_path / "page.html", ys[:2], denoiser, found)


@pytest.mark.parametrize("channel_axis", [None, -1])
@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("channels", [3, 4])
def test_colours_are_shown_with_or_without_their_axis(channels, gaps, channel_axis, tmp_path):
    """As `plot_denoised` does. Once, without the axis, a picture was taken for a volume and one row of it shown."""
    y = noisy((48, 64, channels))
    if gaps:
        y[3:5, 3:5] = np.nan
    denoiser = st.Denoiser(sigma=10.0, choose="bands", levels=2, channel_axis=channel_axis)
    _, data = written(tmp_path / "page.html", y, denoiser)
    [view] = data["views"]
    assert [size_of(view[name]) for name in ("before", "after", "removed", "error")] == [(48, 64, 3)] * 4


@pytest.mark.parametrize("shape", [(5, 48, 64), (48, 64, 5)])
def test_other_channels_have_views_of_their_own(shape, tmp_path):
    axis = shape.index(5)
    _, data = written(
        tmp_path / "page.html", noisy(shape), st.Denoiser(sigma=10.0, choose="bands", levels=2, channel_axis=axis)
    )
    assert [view["label"] for view in data["views"]] == [f"channel {k} of 5" for k in range(1, 6)]
    assert size_of(data["views"][0]["before"]) == (48, 64, 1)


@pytest.mark.parametrize("axis", [None, 0, -1])
def test_missing_entries_do_not_set_the_scale(axis, tmp_path):
    """A detector's fill value is no brightness; and a part with nothing in it can be shown."""
    y = noisy((60, 60)) if axis is None else np.stack([noisy((60, 60))] * 2, axis)
    mask = np.zeros((60, 60), dtype=bool)
    mask[20:40, 20:40] = True
    (y if axis is None else np.moveaxis(y, axis, 0))[..., 20:40, 20:40] = -9999
    options = {"sigma": 10.0, "choose": "bands", "levels": 1, "channel_axis": axis, "mask": mask}
    _, data = written(tmp_path / "page.html", y, st.Denoiser(**options))
    assert data["limits"][0] > -100
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(views.MOST_SHOWN, 2, (20, 20))
        _, data = written(tmp_path / "page.html", y, st.Denoiser(**options))
    assert data["limits"] == [0.0, 1.0]


@pytest.mark.parametrize(
    "name", ["</title><script>alert(1)</script>.png", '"><img src=x onerror=alert(1)>', "a\u202egnp"]
)
def test_a_hostile_file_name_is_only_text(name, tmp_path):
    y, denoiser = noisy((40,)), st.Denoiser(sigma=10.0, choose="bands")
    write_report(tmp_path / "page.html", y, denoiser, denoiser.run(y), name=name)
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    shown = html.unescape(re.search("<h1>(.*?)</h1>", text)[1])
    assert shown == name.replace("\u202e", "?")
    assert name not in text
    assert text.count("<script") == 2


def test_text_is_escaped(tmp_path):
    y = noisy((40,))
    denoiser = st.Denoiser(sigma=10.0, choose="bands")
    found = denoiser.run(y)
    bands = [dataclasses.replace(b, wavelet=f"</script><b>{{{{code}}}} {b.wavelet}") for b in found.bands]
    text, data = written(tmp_path / "page.html", y, denoiser, dataclasses.replace(found, bands=tuple(bands)))
    assert "<b>{{code}}" not in text
    assert data["scales"][0]["bands"][0]["name"] == bands[0].name
    assert "&lt;b&gt;{{code}}" in text


def test_data_of_another_shape_are_refused(tmp_path, page):
    with pytest.raises(ValueError, match=r"y must have the shape of the estimate, \(96, 128\), got \(5,\)"):
        write_report(tmp_path / "page.html", np.zeros(5), st.Denoiser(), page[3])


def test_a_page_that_cannot_be_written_leaves_the_old_one(tmp_path, monkeypatch):
    path = tmp_path / "page.html"
    path.write_text("old")
    from scorethresh.viz import templates

    monkeypatch.setattr(templates.Path, "replace", lambda *_: (_ for _ in ()).throw(OSError("full")))
    y = noisy((40,))
    with pytest.raises(OSError, match="full"):
        written(path, y, st.Denoiser(sigma=10.0, choose="bands"))
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [("page.html", "old")]


@pytest.fixture(scope="module")
def browser():
    driver = browser_or_skip()
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


def test_the_strength_mixes_the_estimate_with_the_data(opened, page):
    from selenium.webdriver import Keys

    slider, label = (opened.find_element("id", name) for name in ("strength", "strength-label"))
    root = page[3].predicted_mse ** 0.5
    assert float(label.text.removeprefix("100%: error ")) == pytest.approx(root, rel=0.01)
    slider.send_keys(Keys.HOME)
    assert label.text == "0%: error 10"
    assert opened.find_element("id", "after").value_of_css_property("opacity") == "0"


def test_the_picture_zooms_by_buttons_and_keys(opened):
    pair, frame = opened.find_element("id", "pair"), opened.find_element("css selector", ".frame")
    before = pair.size["width"]
    opened.find_element("id", "zoom-in").click()
    assert pair.size["width"] == pytest.approx(2 * before, abs=2)
    opened.execute_script("arguments[0].focus()", frame)
    opened.switch_to.active_element.send_keys("-")
    assert pair.size["width"] == before


def test_the_curves_of_a_scale_answer_to_pointer_and_keys(opened, page):
    from selenium.webdriver import ActionChains, Keys

    boxes = opened.find_elements("css selector", "#curves > div")
    scale = page[2]["scales"][0]
    assert len(boxes) == len(page[2]["scales"])
    svg, told = boxes[0].find_element("css selector", "svg"), boxes[0].find_element("css selector", "p:last-child")
    assert told.text == "3 bands"

    def threshold():
        name, number = re.fullmatch(
            r"(.*): threshold (\S+), risk \S+ ± \S+, degrees of freedom \S+", told.text
        ).groups()
        return name, float(number)

    opened.execute_script("arguments[0].scrollIntoView({block: 'center'})", svg)
    ActionChains(opened).move_to_element_with_offset(svg, svg.size["width"] // 2 - 12, 0).perform()
    assert threshold()[1] > 0.9 * scale["bands"][0]["t"][-1]
    ActionChains(opened).move_to_element(opened.find_element("css selector", "#risks h2")).perform()
    assert told.text == "3 bands"
    opened.execute_script("arguments[0].focus()", svg)
    svg.send_keys(Keys.ARROW_DOWN)
    svg.send_keys(Keys.ARROW_DOWN)  # the last band
    first = threshold()
    svg.send_keys(Keys.ARROW_RIGHT)
    second = threshold()
    assert (second[0], second[1] > first[1]) == (first[0], True)
    svg.send_keys(Keys.ARROW_UP)
    assert threshold()[0] != first[0]


def test_slices_are_shown_by_the_slider(browser, tmp_path):
    from selenium.webdriver import Keys

    y = np.random.default_rng(0).normal(size=(10, 24, 32))
    _, data = written(tmp_path / "page.html", y, st.Denoiser(sigma=1.0, choose="bands", levels=2))
    browser.get((tmp_path / "page.html").as_uri())
    browser.find_element("id", "view").send_keys(Keys.END)
    assert browser.find_element("id", "view-label").text == "slice 10 of 10"
    for name in ("before", "after", "removed", "error"):
        assert browser.find_element("id", name).get_attribute("src") == data["views"][-1][name]
    assert browser.get_log("browser") == []


def test_a_signal_is_drawn_moved_and_zoomed(browser, tmp_path):
    from selenium.webdriver import Keys

    written(tmp_path / "page.html", noisy((3000,)), st.Denoiser(choose="bands"))
    browser.get((tmp_path / "page.html").as_uri())

    def window():
        return browser.execute_script("return [signal.from, signal.to]")

    assert window() == [0, 3000]
    lines = browser.find_element("id", "lines")
    blank = """const c = document.getElementById('lines');
        return !c.getContext('2d').getImageData(0, 0, c.width, c.height).data.some(v => v)"""
    assert not browser.execute_script(blank)
    browser.find_element("id", "zoom-in").click()
    assert window() == [750, 2250]
    browser.execute_script("arguments[0].focus()", lines)
    lines.send_keys(Keys.ARROW_RIGHT)
    assert window() == [900, 2400]
    lines.send_keys("-")
    assert window() == [0, 3000]
    assert browser.get_log("browser") == []


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
    assert (browser.find_element("id", "before").get_property("naturalWidth") > 0) == (y.ndim > 1)
    assert browser.find_element("id", "risks").is_displayed() == bool(y.any())
    assert not browser.find_element("id", "view-control").is_displayed()


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
