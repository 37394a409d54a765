"""What a notebook or a prompt shows of results."""

import base64
import dataclasses
import re

import numpy as np
import pytest

import scorethresh as st

WAVE = np.sin(np.arange(400) / 20) * 10
SIGNAL = WAVE + np.random.default_rng(0).normal(size=400)


@pytest.fixture(scope="module")
def found():
    noise = np.random.default_rng(0).normal(size=(400, 300))
    return st.Denoiser(sigma=1.0, choose="bands").run(np.add.outer(WAVE, WAVE[:300]) + noise)


def rows_of(text):
    return dict(re.findall(r"<th[^>]*>(.*?)</th><td[^>]*>(.*?)</td>", text))


def test_a_denoised_picture_has_a_small_one_and_its_numbers(found):
    text = found._repr_html_()
    picture = base64.b64decode(re.search('base64,([^"]*)', text)[1])
    assert picture[16:24] == (150).to_bytes(4) + (200).to_bytes(4)  # every other pixel of 400 x 300
    rows = rows_of(text)
    assert (rows["data"], rows["noise"]) == ("400 × 300, float64", "white Gaussian noise")
    assert float(rows["predicted error (rms)"].split()[0]) == pytest.approx(found.predicted_mse**0.5, rel=0.1)
    assert found.verdict in text
    assert "svg+xml" in st.Denoiser(choose="bands").run(SIGNAL)._repr_html_()


def test_text_in_a_notebook_is_escaped(found):
    text = dataclasses.replace(found, verdict="<b>")._repr_html_()
    assert "&lt;b&gt;" in text
    assert "<b>" not in text


def test_a_selection_shows_its_curve_and_what_to_do():
    y = np.random.default_rng(0).normal(size=1000)
    y[:20] += 6.0
    chosen = st.select_threshold(y, sigma=1.0)
    text = chosen._repr_html_()
    assert rows_of(text)["threshold"] == "3.47"
    assert rows_of(text)["status"] == "interior"
    assert chosen.status.remedy in text
    drawing = base64.b64decode(re.search('base64,([^"]*)', text)[1]).decode()
    assert ">threshold 0 σ<" in drawing
    [points] = re.findall('points="(.*?)"', drawing)
    heights = [float(pair.split(",")[1]) for pair in points.split()]
    finite = chosen.curve.risk[np.isfinite(chosen.curve.thresholds)]
    assert heights[int(np.argmin(finite))] == max(heights)  # SVG counts from the top
    assert st.select_threshold(y, sigma=1.0, thresholds=[np.inf])._repr_html_().count("<img") == 0


def test_a_restoration_shows_what_is_determined(rng):
    mask = rng.random((32, 32)) < 0.8
    restored = st.Restorer(st.Mask(mask), sigma=1.0, steps=2).run(rng.normal(size=(32, 32)))
    rows = rows_of(restored._repr_html_())
    assert rows["data"] == "32 × 32, float64"
    assert rows["determined by the data"] == f"{restored.determined:.0%}"


def test_a_chosen_parameter_shows_the_estimate_and_what_was_tried():
    def scaled(y, factor):
        return factor * y

    chosen = st.select_parameter(scaled, SIGNAL, {"factor": [0.5, 0.9, 1.0]}, sigma=1.0)
    rows = rows_of(chosen._repr_html_())
    assert rows["parameter"] == f"factor={chosen.parameter['factor']:.4g}"
    assert rows["tried"] == f"3 parameters, {chosen.calls} calls"
    assert chosen.status.remedy in chosen._repr_html_()
    many = st.select_parameter(scaled, np.ones((2, 3, 4, 5)) + SIGNAL[:5], [0.5, 1.0], sigma=1.0)
    assert "<img" not in many._repr_html_(), "nothing to draw of four axes"


def test_a_rank_shows_its_singular_values(rng):
    matrix = 3 * np.outer(rng.normal(size=30), rng.normal(size=40)) + rng.normal(size=(30, 40))
    chosen = st.select_rank(matrix, sigma=1.0)
    text = chosen._repr_html_()
    rows = rows_of(text)
    assert (rows["matrix"], rows["rank"], rows["noise level σ"]) == ("30 × 40, float64", "1", "1")
    drawing = base64.b64decode(re.search('base64,([^"]*)', text)[1]).decode()
    assert len(re.search('points="(.*?)"', drawing)[1].split()) == 30
    stack = st.select_rank(np.stack([matrix] * 2), sigma=1.0)
    assert rows_of(stack._repr_html_()) == {"matrices": "2 of 30 × 40", "ranks": "1 to 1"}


@pytest.mark.parametrize("axis", [0, -1])
def test_a_series_shows_its_mean(rng, axis):
    clean = np.einsum("xr,yr,tr->xyt", *(rng.normal(size=(n, 2)) for n in (16, 20, 12)))
    y = np.moveaxis(clean + rng.normal(size=clean.shape), -1, axis)
    found = st.LowRankDenoiser(sigma=1.0, series_axis=axis).run(y)
    text = found._repr_html_()
    assert rows_of(text)["median noise level σ"] == "1"
    picture = base64.b64decode(re.search('base64,([^"]*)', text)[1])
    assert picture[16:24] == (20).to_bytes(4) + (16).to_bytes(4)


def test_what_results_hold_prints_short(found):
    for one in (found, found.plans[0], found.error_blocks, found.bands[0], found.bands[0].curve):
        assert len(repr(one)) < 300
    assert repr(found.plans[0]) == "<Plan: haar thresholds 100.0%>"
