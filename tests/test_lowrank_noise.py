"""Series whose noise depends on the signal: magnitudes, counts, cameras and speckle."""

import math
import warnings

import numpy as np
import pytest
from scipy import stats

import scorethresh as st
from scorethresh.denoising.lowrank import result
from scorethresh.denoising.lowrank.evened import SeriesWayBack, even_out
from scorethresh.denoising.lowrank.magnitude_back import MagnitudeWayBack
from scorethresh.denoising.lowrank.magnitude_map import estimate_magnitude_map, explain_by_level
from scorethresh.denoising.lowrank.series import read_series
from scorethresh.noise.generalised_anscombe import GeneralisedAnscombe
from scorethresh.noise.magnitude import MagnitudeTransform, magnitude_tables


def tissue(rng, shape, volumes, *, dark=2.0, bright=12.0):
    """A smooth positive series of low rank between two brightnesses."""
    from scipy.ndimage import gaussian_filter

    maps = np.stack([gaussian_filter(rng.normal(size=shape), 3) for _ in range(3)], axis=-1)
    clean = (maps / maps.std()) @ rng.normal(size=(3, volumes))
    clean = (clean - clean.min()) / np.ptp(clean)
    return dark + (bright - dark) * clean


def magnitudes(rng, clean, sigma=1.0, coils=1):
    """Magnitudes over coils, of which the first has all the signal."""
    parts = sigma * rng.normal(size=(2 * coils, *clean.shape))
    parts[0] += clean
    return np.sqrt((parts**2).sum(axis=0))


@pytest.mark.parametrize("coils", [1, 4])
def test_the_noise_floor_is_removed(coils):
    rng = np.random.default_rng(coils)
    clean = tissue(rng, (24, 24, 8), 20, dark=4.0)
    clean[:12] /= 8  # half of it is dark
    y = magnitudes(rng, 5 * clean, 5.0, coils)
    noise = st.RicianNoise(coils)
    found = st.LowRankDenoiser(noise=noise, sigma=5.0).run(y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = st.denoise_lowrank(y, sigma=5.0)
    bias, before = (np.mean((estimate - 5 * clean)[:10]) / 5 for estimate in (found.estimate, plain))
    assert before > 0.5
    assert abs(bias) < 0.15 * before
    loss = np.mean((found.estimate - 5 * clean) ** 2)
    assert loss < 0.6 * np.mean((plain - 5 * clean) ** 2)
    assert found.predicted_mse == pytest.approx(loss, abs=2 * found.stderr)
    assert np.array_equal(found.sigma, np.full((24, 24, 8), 5.0))
    # The level may be said by the model, too.
    assert np.array_equal(st.denoise_lowrank(y, noise=st.RicianNoise(coils, sigma=5.0)), found.estimate)


def test_the_error_of_bright_magnitudes_is_predicted():
    """Far from 0 they are Gaussian around sqrt(x^2 + sigma^2): means over eight draws, as for Gaussian noise."""
    z, blind = [], []
    for seed in range(8):
        rng = np.random.default_rng([3, seed])
        clean = tissue(rng, (16, 16, 8), 20, dark=6.0)
        y = magnitudes(rng, clean)
        for sigma, out in ((1.0, z), (None, blind)):
            found = st.LowRankDenoiser(noise="rician", sigma=sigma).run(y)
            out.append((found.predicted_mse - np.mean((found.estimate - clean) ** 2)) / found.stderr)
    for out in (z, blind):
        assert abs(np.mean(out)) < 1.1
        assert np.sqrt(np.mean(np.square(out))) < 2


def test_a_map_of_levels_is_found_and_may_be_given():
    rng = np.random.default_rng(4)
    clean = tissue(rng, (40, 40, 8), 24, dark=1.0)
    clean[:10] = 0.0
    level = (1 + 0.3 * np.linspace(-1, 1, 40))[:, None, None] * np.ones((40, 40, 8))
    y = magnitudes(rng, clean, level[..., None])
    blind = st.LowRankDenoiser(noise="rician").run(y)
    assert np.mean(np.abs(blind.sigma / level - 1)) < 0.04
    assert np.mean(blind.sigma[:8] / level[:8]) == pytest.approx(1, abs=0.05)  # without signal
    given = st.LowRankDenoiser(noise="rician", sigma=level).run(y)
    assert np.array_equal(given.sigma, level)
    losses = [np.mean((one.estimate - clean)[12:] ** 2) for one in (blind, given)]
    assert losses[0] < 1.1 * losses[1]


@pytest.mark.parametrize(("coils", "signal"), [(1, 0.0), (1, 0.3), (1, 1.5), (1, 8.0), (4, 0.0), (4, 5.0)])
def test_levels_explain_variances_of_magnitudes(coils, signal):
    """By the exact law. Below half a noise level the signal is taken for none."""
    law = stats.ncx2(2 * coils, signal**2) if signal else stats.chi2(2 * coils)
    second = law.mean()
    first = law.expect(np.sqrt)
    means, variance = np.full((1, 5), 3 * first), np.array([9 * (second - first**2)])
    found = explain_by_level(variance, means, np.array([3 * math.sqrt(second)]), magnitude_tables(coils), coils)
    assert found == pytest.approx(3.0, rel=0.03 if 0 < signal < 0.5 else 0.005)


def test_levels_of_several_brightnesses():
    """The mean variance of a dark and a bright volume has one level that explains it."""
    tables = magnitude_tables(1)
    moments = [(math.sqrt(math.pi / 2), 2 - math.pi / 2)]
    law = stats.ncx2(2, 36.0)
    moments.append((law.expect(np.sqrt), law.mean() - law.expect(np.sqrt) ** 2))
    means, variances = np.array(moments).T
    rms = np.sqrt(np.mean(variances + means**2))
    assert explain_by_level(variances.mean(keepdims=True), means[None], rms[None], tables, 1) == pytest.approx(
        1, rel=0.005
    )


def test_a_series_without_noise_or_signal():
    rng = np.random.default_rng(5)
    y = magnitudes(rng, np.zeros((24, 24, 20)), 2.0)
    series = read_series(y, -1, None)
    assert estimate_magnitude_map(series, 1).levels == pytest.approx(np.full((24, 24), 2.0), rel=0.05)
    found = st.LowRankDenoiser(noise="rician").run(y)
    assert np.mean(found.estimate**2) < 0.3 * 4  # 2 * 4 before
    clean = np.ones((10, 10, 12)) * np.arange(12.0)
    assert np.array_equal(st.denoise_lowrank(clean, noise="rician"), clean)


@pytest.mark.parametrize("signal", [0.0, 1.0, 6.0])
@pytest.mark.parametrize("error", [0.05, 0.2])
def test_errors_are_weighted_by_what_becomes_of_them(signal, error):
    """Estimates scatter around the transformed signal; weights at these estimates, on average, give the error of y."""
    rng = np.random.default_rng(6)
    transform = MagnitudeTransform(1.0)
    table = magnitude_tables(1).transformed
    z = float(np.interp(signal, table.parameters, table.means))
    e = error * rng.normal(size=(200_000, 1))
    true = np.mean((transform.inverse(z + e) - signal) ** 2)
    scale = np.full(e.shape, 3.0)
    local = MagnitudeWayBack(transform, scale).local_noise(z + e, np.full(e.shape, error**2))
    rel = 0.15 if signal == 1.0 and error > 0.1 else 0.05  # between both the weight bends
    assert np.mean(local.weight) * error**2 == pytest.approx(9 * true, rel=rel)
    assert np.mean(local.variance) == pytest.approx(float(table.variance(np.array(z))), rel=0.02)
    way_back = MagnitudeWayBack(transform, scale)
    assert way_back.doubtful_weight(local.weight) == pytest.approx(local.weight - 9.0)


def test_there_and_back():
    rng = np.random.default_rng(7)
    y = rng.uniform(2, 30, (6, 5, 8))
    scale = rng.uniform(1, 2, (6, 5))
    transform = MagnitudeTransform(1.0)
    evened = even_out(read_series(y, -1, None), transform, scale)
    for k in range(8):
        assert evened.values[..., k] == pytest.approx(transform.forward(y[..., k] / scale))
    way_back = SeriesWayBack(transform, scale)
    back = way_back.restored(evened.values)
    assert back[2, 3] == pytest.approx(scale[2, 3] * transform.inverse(evened.values[2, 3]))
    assert way_back.level_map(np.full((6, 5), 9.0)) == pytest.approx(np.full((6, 5), 3.0))
    assert MagnitudeWayBack(transform, scale).level_map(np.full((6, 5), 9.0)) is scale


def test_errors_of_transformed_values_are_in_units_of_y():
    """Anscombe's root of a mean count x has a slope of 1/sqrt(x), and y was divided by the scale."""
    scale = np.array([[1.0, 3.0]])
    values = np.full((1, 2), 2 * math.sqrt(100.0))
    local = SeriesWayBack(GeneralisedAnscombe(1.0, 0.0, 0.0), scale).local_noise(values, np.zeros((1, 2)))
    assert local.variance == pytest.approx(1, rel=0.01)
    assert local.weight == pytest.approx(100 * scale**2, rel=0.02)


def test_an_estimated_gain_widens_the_standard_error():
    rng = np.random.default_rng(10)
    y = camera(rng, tissue(rng, (40, 40), 16, dark=20.0, bright=100.0))
    given = st.LowRankDenoiser(noise=st.CameraNoise(gain=0.5, offset=100.0, read=2.0)).run(y)
    assert st.LowRankDenoiser(noise="camera").run(y).stderr > 1.5 * given.stderr


def test_errors_without_signal_widen_the_standard_error(monkeypatch):
    """By half of what they add, which is most of the predicted error here; bright magnitudes add nothing."""
    rng = np.random.default_rng([10, 1])
    clean = tissue(rng, (40, 40, 8), 24, dark=2.0, bright=14.0)
    clean[:20] = 0.0
    y = magnitudes(rng, clean)
    for data, low, high in ((y, 0.3, 0.5), (magnitudes(rng, clean + 20), 0.0, 0.02)):
        found = st.LowRankDenoiser(noise="rician", sigma=1.0).run(data)
        with monkeypatch.context() as patch:
            patch.setattr(result, "WEIGHT_DOUBT", 0.0)
            sure = st.LowRankDenoiser(noise="rician", sigma=1.0).run(data)
        added = math.sqrt(found.stderr**2 - sure.stderr**2)
        assert low * found.predicted_mse <= added <= high * found.predicted_mse


def counts(rng, clean):
    return rng.poisson(clean)


def camera(rng, clean):
    return 100 + (rng.poisson(clean) + rng.normal(0.0, 2.0, clean.shape)) / 0.5


def speckle(rng, clean):
    return clean * rng.gamma(20.0, 1 / 20.0, clean.shape)


@pytest.mark.parametrize(
    ("draw", "model", "truth", "variance"),
    [
        (counts, "poisson", lambda x: x, lambda x: x),
        (camera, st.CameraNoise(gain=0.5, offset=100.0, read=2.0), lambda x: 100 + x / 0.5, lambda x: (x + 4) / 0.25),
        (speckle, st.SpeckleNoise(20), lambda x: x, lambda x: x**2 / 20),
    ],
)
def test_other_noise_that_depends_on_the_signal(draw, model, truth, variance):
    z = []
    for seed in range(4):
        rng = np.random.default_rng([8, seed])
        clean = tissue(rng, (32, 32), 24, dark=5.0, bright=60.0)
        found = st.LowRankDenoiser(noise=model).run(draw(rng, clean).astype(float))
        loss = np.mean((found.estimate - truth(clean)) ** 2)
        assert loss < 0.25 * variance(clean).mean()
        assert np.median(found.sigma**2 / variance(clean).mean(axis=-1)) == pytest.approx(1, abs=0.05)
        z.append((found.predicted_mse - loss) / found.stderr)
    assert abs(np.mean(z)) < 2


def test_masks_dtypes_and_axes():
    rng = np.random.default_rng(9)
    clean = tissue(rng, (20, 18, 6), 12, dark=4.0)
    y = np.rint(10 * magnitudes(rng, clean)).astype(np.int16)
    mask = np.zeros((20, 18, 6), dtype=bool)
    mask[:4] = True
    found = st.LowRankDenoiser(noise="rician", sigma=10.0, mask=mask).run(y)
    assert found.estimate.dtype == np.int16
    assert np.array_equal(found.estimate[:4], y[:4])
    assert (found.sigma[:4] == 0).all()
    moved = st.denoise_lowrank(np.moveaxis(y, -1, 0), noise="rician", sigma=10.0, mask=mask, series_axis=0)
    assert np.array_equal(np.moveaxis(moved, 0, -1), found.estimate)
    hidden = y.astype(float)
    hidden[0, 0, 0, 0] = np.nan
    hidden[1, 1, 1] = -5.0  # constant, so it does not matter
    assert np.isfinite(st.denoise_lowrank(hidden, noise="rician", sigma=10.0)[4:]).all()


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"noise": "auto"}, ValueError, "noise must be 'white', 'rician'.*got 'auto'"),
        ({"noise": "correlated"}, ValueError, "noise must be 'white'.*before interpolation"),
        ({"noise": np.ones((12, 10))}, ValueError, "noise must be 'white'"),
        ({"noise": "pink"}, ValueError, "noise"),
        ({"noise": None}, TypeError, "noise must be one of"),
        ({"noise": "poisson", "sigma": 1.0}, ValueError, "sigma goes with white or Rician noise.*Leave it out"),
        ({"noise": st.RicianNoise(sigma=1.0), "sigma": 1.0}, ValueError, "sigma goes with white or Rician noise"),
        ({"noise": "rician", "sigma": -1.0}, ValueError, "sigma must be positive"),
        ({"noise": "rician", "sigma": np.ones((3, 3))}, ValueError, "map with the shape of one volume"),
        ({"noise": "rician", "y": -np.ones((12, 10, 8)) * np.arange(8)}, ValueError, "magnitudes of at least 0"),
        ({"noise": "rician", "y": 1j * np.arange(960.0).reshape(12, 10, 8)}, ValueError, "got complex data"),
    ],
)
def test_bad_input_is_named(arguments, error, message):
    y = np.abs(np.random.default_rng(0).normal(size=(12, 10, 8)))
    with pytest.raises(error, match=message):
        st.denoise_lowrank(**{"y": y, **arguments})


def test_a_white_model_may_hold_the_level():
    from scorethresh.noise.models import WhiteNoise

    y = np.random.default_rng(1).normal(size=(16, 16, 12))
    assert np.array_equal(st.denoise_lowrank(y, noise=WhiteNoise(1.0)), st.denoise_lowrank(y, sigma=1.0))


def test_an_empty_background_is_left_alone():
    """Scanners set it to zero: patches without any magnitude tell no level, and must not warn of a division."""
    rng = np.random.default_rng(3)
    clean = tissue(rng, (24, 24, 8), 20, dark=4.0)
    y = magnitudes(rng, clean)
    y[:12] = 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = st.LowRankDenoiser(noise="rician").run(y)
    assert not found.estimate[:12].any()
    assert not found.sigma[:12].any()
    # The level of one voxel is off by 3% in the mean on such data, that of all by less.
    assert abs(found.sigma[12:].mean() - 1.0) < 0.03
    assert np.isfinite(found.predicted_mse)
