"""Plots, by what is drawn: artists and their data."""

import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

import scorethresh as st
from scorethresh.select.threshold import find_threshold
from scorethresh.viz import plot_bands, plot_denoised, plot_dof, plot_risk, plot_selection

mpl.use("Agg")


@pytest.fixture
def ax():
    return Figure().subplots()


@pytest.fixture(autouse=True)
def close():
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


def curve(thresholds=(0.0, 2.0, 4.0, np.inf), risk=(100.0, 40.0, 60.0, 90.0), sigma=2.0):
    t = np.array(thresholds)
    return st.RiskCurve(t, np.array(risk), np.linspace(10.0, 0.0, t.size), np.full(t.size, 5.0), 10, sigma)


def denoised(estimate, bands=(), mse=4.0):
    return st.Denoised(np.asarray(estimate), 1.0, mse, 0.1, tuple(bands), {})


def drawn(ax, label):
    [line] = [a for a in ax.get_lines() if a.get_label().startswith(label)]
    return line.get_xdata(), line.get_ydata()


def sparse(rng, size=20_000, sigma=3.0):
    x0 = np.zeros(size)
    x0[: size // 50] = 6.0
    return sigma * (x0 + rng.normal(size=size))


def test_risk_is_drawn_per_entry_in_units_of_the_noise(ax):
    assert plot_risk(curve(), ax) is ax
    x, risk = drawn(ax, "estimated risk")
    np.testing.assert_allclose(x, [0, 1, 2])
    np.testing.assert_allclose(risk, [2.5, 1.0, 1.5])  # over 10 entries and sigma^2 = 4
    assert drawn(ax, "least: 1 σ² at 1 σ") == ([1.0], [1.0])
    [killed] = ax.containers
    assert killed.get_label() == "all set to zero"
    np.testing.assert_allclose(killed.lines[0].get_ydata(), [2.25])
    assert ax.get_xlabel() == "threshold, in units of σ = 2"
    assert "σ²" in ax.get_ylabel()


def test_the_band_is_two_standard_errors_wide(ax):
    plot_risk(curve(), ax)
    [band] = [c for c in ax.collections if c.get_label() == "± 2 standard errors"]
    y = band.get_paths()[0].vertices[:, 1]
    assert (y.min(), y.max()) == (1.0 - 0.25, 2.5 + 0.25)


def test_the_true_risk_is_drawn_where_it_is_known(ax, rng):
    y = sparse(rng)
    found = st.risk_curve(y, [3.0, 9.0, np.inf], sigma=3.0)
    truth = st.risk_curve(y, [0.0, 6.0, 12.0], sigma=3.0, method=st.Oracle(np.zeros(y.size)))
    found.plot(ax, truth)
    x, risk = drawn(ax, "true risk")
    np.testing.assert_allclose(x, [0.0, 2.0, 4.0])
    np.testing.assert_allclose(risk[0], 1.0)  # with nothing removed the error is the noise


@pytest.mark.parametrize("truth", [[1.0, 2.0], curve() + curve()])
def test_a_truth_of_something_else_is_refused(truth, ax):
    with pytest.raises(ValueError, match=r"truth must be the risk curve of the same 10 entries.*Oracle"):
        plot_risk(curve(), ax, truth)


def test_least_risk_at_infinity_is_marked_beside_the_curve(ax):
    plot_risk(curve(risk=(100.0, 40.0, 60.0, 30.0)), ax)
    x, risk = drawn(ax, "least: 0.75 σ² with all set to zero")
    assert x[0] > 2
    assert risk == [0.75]


@pytest.mark.parametrize("draw", [plot_risk, plot_dof])
def test_a_curve_of_infinity_alone_can_be_drawn(draw, ax):
    draw(curve((np.inf,), (30.0,)), ax)
    ax.figure.canvas.draw()


def test_degrees_of_freedom(ax):
    found = curve()
    assert plot_dof(found, ax) is ax
    np.testing.assert_allclose(drawn(ax, "estimated degrees")[1], found.dof[:3])
    assert drawn(ax, "at the least risk")[0] == [1.0]
    assert ax.get_ylabel() == "degrees of freedom, of 10 entries"


@pytest.mark.parametrize("make", [np.asarray, st.Magnitudes.exact, lambda y: st.Magnitudes.compress(y, sigma=3.0)])
def test_the_histogram_counts_every_entry(make, ax, rng):
    y = sparse(rng)
    y[:7] = 3.0 * 40  # beyond the fit
    selection = st.select_threshold(make(y), sigma=3.0)
    assert selection.plot(ax) is ax
    [bars] = ax.patches
    heights, edges, _ = bars.get_data()
    np.testing.assert_allclose(heights * np.diff(edges), np.histogram(np.abs(y) / 3.0, edges)[0], atol=1e-6)
    assert bars.get_label() == "19993 entries (and 7 beyond)"
    assert drawn(ax, "threshold")[0] == pytest.approx([selection.threshold / 3.0] * 2)
    assert ax.get_xlabel() == "magnitude, in units of σ = 3"


def test_the_mixture_has_the_mass_and_the_shape_of_the_data(ax, rng):
    """2% of the entries lie around 6 sigma, the rest is a half-normal density, 2 phi(0) = 0.8 at 0."""
    st.select_threshold(sparse(rng), sigma=3.0).plot(ax)
    x, density = drawn(ax, "fitted mixture")
    assert np.trapezoid(density, x) == pytest.approx(20_000, rel=0.01)
    assert density[0] == pytest.approx(0.98 * 20_000 * 0.798, rel=0.03)
    assert np.trapezoid(density[x > 4.5], x[x > 4.5]) == pytest.approx(0.02 * 20_000, rel=0.1)


@pytest.mark.parametrize("y", [np.zeros(50), np.full(50, 0.1), np.array([1.0])])
def test_a_selection_that_kills_everything_has_no_line(y, ax):
    selection = find_threshold(y, sigma=1.0, thresholds=[np.inf])
    plot_selection(selection, ax)
    ax.figure.canvas.draw()
    assert ax.get_title() == "all entries set to zero"
    assert not [line for line in ax.get_lines() if line.get_label().startswith("threshold")]


def test_pictures_before_and_after_and_what_was_removed(rng):
    y = rng.integers(0, 256, (20, 30)).astype(np.uint8)
    estimate = np.full((20, 30), 200, np.uint8)
    estimate[0, 0] = 10
    axes = denoised(estimate).plot(y)
    before, after, removed = (ax.get_images()[0] for ax in axes)
    np.testing.assert_array_equal(before.get_array(), y)
    np.testing.assert_array_equal(after.get_array(), estimate)
    np.testing.assert_array_equal(removed.get_array(), y.astype(int) - estimate.astype(int))
    assert before.get_clim() == after.get_clim() == (10, 200)
    assert sum(removed.get_clim()) == 0
    assert axes[1].get_title() == "denoised, predicted rms error 2"
    assert before.colorbar.ax.get_ylabel() == "value, in units of y"


def test_signals_are_lines(rng):
    y, estimate = rng.normal(size=(2, 50))
    axes = denoised(estimate).plot(y)
    for ax, expected in zip(axes, [y, estimate, y - estimate], strict=True):
        np.testing.assert_array_equal(ax.get_lines()[0].get_ydata(), expected)
    assert axes[-1].get_xlabel() == "sample"


def test_channels_of_a_signal_have_their_own_line(rng):
    [ax] = plot_denoised(denoised(rng.normal(size=(2, 50))), channel_axis=0)
    assert [line.get_linestyle() for line in ax.get_lines()] == ["-", "--"]


def test_volumes_show_their_middle_slice(rng):
    estimate = rng.normal(size=(5, 8, 9))
    [ax] = denoised(estimate).plot()
    np.testing.assert_array_equal(ax.get_images()[0].get_array(), estimate[2])


@pytest.mark.parametrize("channel_axis", [0, -1, None])
def test_colours(channel_axis, rng):
    colours = rng.uniform(size=(8, 9, 3))
    colours[0, 0], colours[0, 1] = 0.0, 1.0
    estimate = np.moveaxis(colours, -1, -1 if channel_axis is None else channel_axis)
    axes = denoised(estimate).plot(estimate, channel_axis=channel_axis)
    np.testing.assert_allclose(axes[1].get_images()[0].get_array(), colours)
    np.testing.assert_allclose(axes[2].get_images()[0].get_array(), 0)  # the scale starts at zero if all is


def test_of_other_channels_the_middle_one_is_shown(rng):
    estimate = rng.normal(size=(5, 8, 9))
    [ax] = denoised(estimate).plot(channel_axis=0)
    np.testing.assert_array_equal(ax.get_images()[0].get_array(), estimate[2])


def test_complex_data_and_missing_entries(rng):
    estimate = rng.normal(size=(8, 9)) + 1j
    estimate[0, 0] = np.nan
    axes = denoised(estimate).plot(estimate + 3j)
    shown = [ax.get_images()[0] for ax in axes]
    np.testing.assert_allclose(shown[1].get_array().data, np.abs(estimate))
    np.testing.assert_allclose(shown[2].get_array().data[1:], 3)
    assert shown[2].get_clim()[0] == 0
    axes[0].figure.canvas.draw()


def test_axes_of_the_caller_are_used_and_counted(rng):
    y = rng.normal(size=50)
    axes = Figure().subplots(3)
    assert list(denoised(y).plot(y, axes)) == list(axes)
    with pytest.raises(ValueError, match=r"axes must be 3, got 2\. Try plt\.subplots\(1, 3\)"):
        denoised(y).plot(y, axes[:2])


def test_data_of_another_shape_are_refused():
    with pytest.raises(ValueError, match=r"y must have the shape of the estimate, \(5,\), got \(6,\)"):
        denoised(np.zeros(5)).plot(np.zeros(6))


def test_bands(ax):
    bands = [st.Band("haar", 1, "d", 0.5, 1.5, 0.025, curve()), st.Band("haar", 2, "d", 0.25, np.inf, 0.0, curve())]
    assert plot_bands(denoised(np.zeros(4), bands), ax) is ax
    x, rows = drawn(ax, "threshold")
    assert (list(x), list(rows)) == ([3.0], [0])
    assert list(drawn(ax, "all set to zero")[1]) == [1]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["haar 1 d", "haar 2 d"]
    assert [text.get_text() for text in ax.texts] == ["2.5% kept", "0.0% kept"]


def test_no_bands_no_error(ax):
    plot_bands(denoised(np.zeros(4)), ax)


def test_everything_is_grey(rng):
    """Readable in black and white: no two things differ by hue."""
    y = sparse(rng, 500)
    found = st.Denoiser(sigma=3.0, choose="bands").run(y)
    selection = st.select_threshold(y, sigma=3.0)
    all_axes = [selection.plot(), selection.curve.plot(truth=selection.curve), plot_dof(selection.curve)]
    for ax in [*all_axes, plot_bands(found), *found.plot(y)]:
        colours = [to_rgb(line.get_color()) for line in ax.get_lines()]
        colours += [tuple(c[:3]) for group in ax.collections for c in [*group.get_facecolor(), *group.get_edgecolor()]]
        colours += [patch.get_facecolor()[:3] for patch in ax.patches]
        assert colours
        assert all(r == g == b for r, g, b in colours)


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"matplotlib is not installed.*pip install '\.\[plot\]'"):
        curve().plot()


def test_importing_the_plots_does_not_import_matplotlib():
    code = "import sys, scorethresh.viz as v; print(sorted(v.__all__), 'matplotlib' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    names = ["plot_bands", "plot_denoised", "plot_dof", "plot_rank", "plot_risk", "plot_selection", "write_report"]
    names += ["write_restoration_report"]
    assert out.strip() == f"{names} False"


def test_curves_are_drawn_over_each_other_by_name_and_colour(ax):
    curve().plot(ax, label="mine", color="C1")
    curve(risk=(100.0, 50.0, 60.0, 90.0)).plot(ax, label="other", color="C0")
    lines = {line.get_label(): line for line in ax.get_lines()}
    np.testing.assert_allclose(lines["mine"].get_ydata(), [2.5, 1.0, 1.5])
    np.testing.assert_allclose(lines["other"].get_ydata(), [2.5, 1.25, 1.5])
    assert to_rgb(lines["mine"].get_color()) != to_rgb(lines["other"].get_color())
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert len(labels) == len(set(labels))


def test_the_map_of_errors_is_a_further_panel(rng):
    y = rng.normal(size=(48, 64, 3))
    found = st.Denoiser(sigma=1.0, choose="bands", levels=2, channel_axis=-1).run(y)
    axes = found.plot(y, channel_axis=-1, error=True)
    assert axes[-1].get_title() == "predicted error (rms)"
    np.testing.assert_allclose(axes[-1].get_images()[0].get_array(), np.sqrt(found.error_map()))
    signal = st.Denoiser(sigma=1.0, choose="bands").run(y[:, 0, 0])
    [_, last] = signal.plot(error=True)
    np.testing.assert_allclose(last.get_lines()[0].get_ydata(), np.sqrt(signal.error_map()))
