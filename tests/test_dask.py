"""Data in chunks: the same result as in memory, whatever the chunks."""

import itertools
import pickle

import numpy as np
import pytest

import scorethresh as st
from scorethresh.denoising import crops, noise_sample, places, value_range
from scorethresh.scale import statistics as chunk_statistics

da = pytest.importorskip("dask.array")
dask = pytest.importorskip("dask")

from scorethresh.scale import fit, tiles  # noqa: E402
from scorethresh.scale.source import read_source  # noqa: E402

SHAPES = {1: (60_000,), 2: (260, 220), 3: (64, 48, 60)}
CHUNKS = {1: (7000,), 2: (37, 100), 3: (13, 48, 33)}
OTHER = {1: (60_000,), 2: (260, 41), 3: (64, 20, 60)}


@pytest.fixture
def small(monkeypatch):
    """Sizes from which on data are large, so that small ones are treated as large ones."""
    sizes = {1: (33_000, 16_000, 40_000), 2: (35_000, 128, 60_000), 3: (100_000, 32, 1 << 18)}
    for ndim, (tile, crop, refined) in sizes.items():
        monkeypatch.setitem(places.TILE_ENTRIES, ndim, tile)
        monkeypatch.setitem(places.TILES_PER_WHOLE, ndim, 1)
        monkeypatch.setitem(crops.CROP_SIDE, ndim, crop)
        monkeypatch.setitem(tiles.REFINED_ENTRIES, ndim, refined)
    monkeypatch.setattr(noise_sample, "MEASURED_WHOLE", 36_000)
    with dask.config.set(scheduler="synchronous"):
        yield


def scene(ndim, rng):
    """Smooth waves and a step, with white noise of level 2."""
    axes = np.meshgrid(*(np.arange(n) for n in SHAPES[ndim]), indexing="ij")
    clean = 20 * np.sin(sum(a / (7 + k) for k, a in enumerate(axes))) + 30 * (axes[0] > SHAPES[ndim][0] // 3)
    return clean + rng.normal(0.0, 2.0, clean.shape)


def check(y, atol=1e-4, chunks=None, rtol=1e-6, **options):
    """Denoise in memory and in chunks of two kinds; compare everything."""
    expected = st.Denoiser(**options).run(y)
    spatial = y.ndim - (options.get("channel_axis") is not None)
    for some in chunks or [CHUNKS[spatial]]:
        lazy = st.Denoiser(**options).run(da.from_array(y, chunks=some))
        assert lazy.estimate.shape == y.shape
        assert lazy.estimate.dtype == y.dtype
        assert lazy.estimate.chunks == da.from_array(y, chunks=some).chunks
        found = lazy.compute()
        assert float(lazy.predicted_psnr()) == pytest.approx(expected.predicted_psnr(), abs=1e-3)
        assert float(lazy.predicted_psnr(7.0)) == pytest.approx(found.predicted_psnr(7.0), rel=1e-9)
        off = np.abs(found.estimate - expected.estimate) / np.nanstd(np.abs(y))
        np.testing.assert_array_equal(np.isnan(off), np.isnan(expected.estimate))
        assert np.nanquantile(off, 0.9) <= atol
        assert np.nanmax(off) <= 50 * atol  # rounding may choose the other one of two patches that are as near
        assert found.predicted_mse == pytest.approx(expected.predicted_mse, rel=rtol)
        assert found.stderr == pytest.approx(expected.stderr, rel=rtol)
        np.testing.assert_allclose(found.sigma, expected.sigma, rtol=1e-12)
        assert found.verdict == expected.verdict
        assert repr(found.noise) == repr(expected.noise) or type(found.noise) is type(expected.noise)
        assert found.outliers == expected.outliers
        off = np.abs(found.error_map() - expected.error_map())
        assert np.mean(off <= 1e-2 * expected.error_map()) >= 0.9
        assert (off <= 0.1 * expected.error_map()).all()  # the other patch, again
        assert [b.threshold for b in found.bands] == pytest.approx([b.threshold for b in expected.bands])
        assert found.weights == pytest.approx(expected.weights, abs=1e-6)
    return expected, lazy


@pytest.mark.parametrize("ndim", [1, 2, 3])
@pytest.mark.parametrize("choose", ["bands", pytest.param("blend", marks=pytest.mark.slow)])
def test_chunks_do_not_matter(small, rng, ndim, choose):
    y = scene(ndim, rng)
    # Where two patches are as near, rounding chooses, and the sums of the prediction follow.
    check(y.astype(np.float32), choose=choose, levels=2, rtol=1e-4 if choose == "blend" else 1e-5)


def test_estimate_and_prediction_are_lazy_and_can_be_computed_together(small, rng):
    y = da.from_array(scene(2, rng), chunks=CHUNKS[2])
    lazy = st.Denoiser(choose="bands", levels=2).run(y)
    estimate, mse, stderr = dask.compute(lazy.estimate, lazy.predicted_mse, lazy.stderr)
    found = lazy.compute()
    assert (mse, stderr) == (found.predicted_mse, found.stderr)
    np.testing.assert_array_equal(estimate, found.estimate)
    np.testing.assert_array_equal(st.denoise(y, choose="bands", levels=2).compute(), estimate)
    assert "sigma" in repr(lazy)
    assert len(pickle.dumps(lazy.plans)) < 1 << 20


def test_gaps_and_masks_are_those_in_memory(small, rng):
    y = scene(2, rng)
    y[50:55, 80:90] = np.nan
    mask = np.zeros(y.shape, bool)
    mask[100:104] = True
    expected, _ = check(y, choose="bands", levels=2, mask=mask)
    assert np.isnan(expected.estimate[52, 85])
    np.testing.assert_array_equal(expected.estimate[mask], y[mask])


def test_background_clipping_and_rounding_are_those_in_memory(small, rng):
    y = np.clip(np.rint(4 * scene(2, rng) + 50), 0, 255).astype(np.uint8)
    y[:60, :90] = 0
    expected, _ = check(y, choose="bands", levels=2, atol=0)
    assert (expected.estimate[:55, :85] == 0).all()


def test_outliers_are_those_in_memory(small, rng):
    y = scene(2, rng)
    y[4:220:9, 7:200:11] = 500.0
    expected, _ = check(y, choose="bands", levels=2)
    assert expected.outliers == 432


def test_channels_are_those_in_memory(small, rng):
    y = np.stack([scene(2, rng), 0.5 * scene(2, rng), scene(2, rng)], axis=-1)
    check(y, choose="bands", levels=1, channel_axis=-1, chunks=[(50, 60, 1)])


@pytest.mark.slow
def test_channels_share_their_patches_as_in_memory(small, rng):
    y = np.stack([scene(2, rng), 0.5 * scene(2, rng)])
    check(y, channel_axis=0, chunks=[(1, 60, 100)])


def test_constant_channels_stay(small, rng):
    y = np.stack([scene(2, rng), np.full(SHAPES[2], 7.0)])
    expected, _ = check(y, choose="bands", levels=2, channel_axis=0, chunks=[(2, 60, 100)])
    np.testing.assert_array_equal(expected.estimate[1], 7.0)


@pytest.mark.parametrize("noise", ["poisson", "camera", "correlated", "rician", "speckle"])
def test_noise_models_are_those_in_memory(small, rng, noise):
    y = np.abs(scene(2, rng)) + 5
    y = rng.poisson(y) if noise in ("poisson", "camera") else y
    check(y.astype(np.float64), choose="bands", levels=2, noise=noise, rtol=1e-5)


def test_complex_data_are_those_in_memory(small, rng):
    check(scene(2, rng) + 1j * scene(2, rng), choose="bands", levels=2)


@pytest.mark.parametrize("lazy_sigma", [True, False])
def test_maps_of_levels_are_those_in_memory(small, rng, lazy_sigma):
    sigma = np.linspace(1.0, 3.0, SHAPES[2][1]) * np.ones(SHAPES[2])
    y = scene(2, rng) + sigma * rng.normal(size=sigma.shape)
    expected = st.Denoiser(choose="bands", levels=2, sigma=sigma).run(y)
    given = da.from_array(sigma, chunks=50) if lazy_sigma else sigma
    found = st.Denoiser(choose="bands", levels=2, sigma=given).run(da.from_array(y, chunks=CHUNKS[2])).compute()
    np.testing.assert_allclose(found.estimate, expected.estimate, atol=1e-4)
    assert found.predicted_mse == pytest.approx(expected.predicted_mse, rel=1e-6)


def test_small_data_are_one_task(rng):
    y = scene(2, rng)[:100, :90]
    lazy = st.Denoiser().run(da.from_array(y, chunks=30))
    expected = st.Denoiser().run(y)
    np.testing.assert_array_equal(lazy.estimate.compute(), expected.estimate)
    assert float(lazy.predicted_mse.compute()) == expected.predicted_mse


def test_data_without_noise_stay(small):
    y = da.ones(SHAPES[2], chunks=50)
    found = st.Denoiser().run(y).compute()
    np.testing.assert_array_equal(found.estimate, 1.0)
    assert found.predicted_mse == 0


def test_what_cannot_be_denoised_is_refused_before_the_work(small, rng):
    y = scene(2, rng)
    y[3, 4] = np.inf
    with pytest.raises(ValueError, match="1 infinite entries"):
        st.denoise(da.from_array(y, chunks=50))
    with pytest.raises(ValueError, match="no entry is known"):
        st.denoise(da.full(SHAPES[2], np.nan, chunks=50), sigma=1.0)
    with pytest.raises(TypeError, match="must hold numbers"):
        st.denoise(da.from_array(np.full((9, 9), "a"), chunks=5))
    with pytest.raises(TypeError, match="masked chunks"):
        st.denoise(da.ma.masked_greater(da.from_array(y, chunks=50), 3))
    with pytest.raises(ValueError, match="sigma must be one number"):
        st.denoise(da.from_array(y, chunks=50), sigma=np.ones(7))
    with pytest.raises(ValueError, match="positive and finite"):
        st.denoise(da.from_array(scene(2, rng), chunks=50), sigma=np.zeros(SHAPES[2]))


def words_of(error, run):
    with pytest.raises(error) as told:
        run()
    return str(told.value)


@pytest.mark.parametrize("value", [1e20, -9.96921e36])
@pytest.mark.parametrize("at", [(3, 4), (130, 100), (slice(200, 259), slice(1, 200))])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_fill_values_are_refused_with_the_words_for_data_in_memory(small, rng, monkeypatch, value, at, dtype):
    """Whether the crops that tell the noise hold some or not; known quartiles are those of one entry of several."""
    monkeypatch.setattr(value_range, "SAMPLE_SIZE", 9000)
    y = scene(2, rng).astype(dtype)
    y[60:70, 20:25] = np.nan
    y[at] = value
    expected = words_of(ValueError, lambda: st.denoise(y))
    assert "a fill value? Mark it as missing" in expected
    for chunks in CHUNKS[2], 90:
        assert words_of(ValueError, lambda: st.denoise(da.from_array(y, chunks=chunks))) == expected  # noqa: B023
    options = {"choose": "bands", "levels": 2, "mask": np.isclose(y, value)}
    found = st.denoise(da.from_array(y, chunks=90), **options).compute()
    np.testing.assert_allclose(found, st.denoise(y, **options), atol=1e-3)


def test_fill_values_of_one_channel_are_refused(small, rng):
    y = np.stack([scene(2, rng), scene(2, rng)], axis=-1)
    y[250, 7, 1] = 1e20
    expected = words_of(ValueError, lambda: st.denoise(y, channel_axis=-1))
    assert words_of(ValueError, lambda: st.denoise(da.from_array(y, chunks=(50, 70, 1)), channel_axis=-1)) == expected


def test_fill_values_of_small_data_are_refused_when_they_are_computed(rng):
    y = scene(2, rng)[:100, :90]
    y[8, 9] = 1e20
    lazy = st.denoise(da.from_array(y, chunks=30))
    assert words_of(ValueError, lazy.compute) == words_of(ValueError, lambda: st.denoise(y))


@pytest.mark.parametrize("value", [np.inf, 1e20])
def test_data_without_noise_are_read_before_they_are_given_back(small, value):
    y = np.add.outer(np.zeros(SHAPES[2][0]), np.repeat([1.0, 2.0], 110))
    y[250, 3] = value
    expected = words_of(ValueError, lambda: st.denoise(y))
    assert words_of(ValueError, lambda: st.denoise(da.from_array(y, chunks=50))) == expected


@pytest.mark.parametrize(("shape", "step"), [((57,), 8), ((9, 31), 7), ((5, 6, 7), 4), ((6, 7), 1)])
def test_samples_of_tiles_are_those_of_the_whole(monkeypatch, shape, step):
    size = int(np.prod(shape))
    monkeypatch.setattr(value_range, "SAMPLE_SIZE", size // step)
    whole = np.arange(float(size)).reshape(shape)
    cuts = [sorted({0, n // 3, n // 2, n}) for n in shape]
    found = []
    for tile in itertools.product(*([slice(*ends) for ends in itertools.pairwise(c)] for c in cuts)):
        found.append(whole[tile][value_range.sampled_entries(tile, shape)])
    np.testing.assert_array_equal(np.sort(np.concatenate(found)), whole.ravel()[::step])


def test_models_that_need_all_data_are_told(small, rng):
    class Own(st.noise.base.NoiseModel):
        def measure(self, y, missing):
            raise AssertionError

    with pytest.raises(TypeError, match="sampled = True"):
        st.denoise(da.from_array(scene(2, rng), chunks=50), noise=Own())


def test_ends_of_parts_add_up(rng):
    y = rng.integers(0, 6, 300).astype(float)
    parts = [chunk_statistics.end_of(part) for part in np.split(y, [5, 90, 200])]
    total = parts[0] | parts[1] | parts[2] | parts[3]
    assert total == chunk_statistics.End(0.0, np.count_nonzero(y == 0), 1.0, np.count_nonzero(y == 1))
    assert chunk_statistics.end_of(y[:0]) | chunk_statistics.end_of(np.ones(3)) == chunk_statistics.End(1.0, 3)


@pytest.mark.parametrize("method", ["mixture", "score", "jansen", "sure"])
def test_thresholds_are_those_in_memory(rng, method):
    y = rng.normal(size=60_000)
    y[:2000] += 5
    rule = "soft" if method == "sure" else "hard"
    lazy = da.from_array(y.reshape(200, 300), chunks=(37, 110))
    expected, found = (st.select_threshold(some, sigma=1.0, method=method, rule=rule) for some in (y, lazy))
    assert found.threshold == expected.threshold
    np.testing.assert_allclose(found.curve.risk, expected.curve.risk, rtol=1e-9, atol=1e-7)
    np.testing.assert_array_equal(found.estimate.compute().ravel(), expected.estimate)
    curves = [st.risk_curve(some, [1.0, 3.0], sigma=1.0, rule=rule, method=method).risk for some in (y, lazy)]
    np.testing.assert_allclose(curves[1], curves[0], rtol=1e-9)


def test_small_samples_in_chunks_are_exact(rng):
    y = rng.normal(size=1000)
    lazy = da.from_array(y, chunks=77)
    assert st.select_threshold(lazy, sigma=1.0).risk == st.select_threshold(y, sigma=1.0).risk
    assert st.Magnitudes.exact(lazy).size == 1000
    assert st.Magnitudes.compress(lazy, sigma=1.0).size == 1000
    assert st.select_threshold(lazy, sigma=1.0, method="universal").threshold > 3.7


@pytest.mark.parametrize("chunks", [1, ((1, 398, 1),), ((399, 1),), 400])
def test_odd_chunks_of_samples_do_not_matter(rng, chunks):
    """Of one entry, of uneven sizes, and one for all."""
    y = rng.normal(size=400)
    y[:40] += 6.0
    lazy = da.from_array(y, chunks=chunks)
    assert st.estimate_sigma(lazy) == st.estimate_sigma(y)
    found, expected = (st.select_threshold(some, sigma=1.0) for some in (lazy, y))
    assert (found.threshold, found.risk) == (expected.threshold, pytest.approx(expected.risk, rel=1e-12))
    np.testing.assert_array_equal(found.estimate.compute(), expected.estimate)
    curves = [st.risk_curve(some, [1.0, 3.0], sigma=1.0, method="score").risk for some in (lazy, y)]
    np.testing.assert_allclose(*curves, rtol=1e-12)
    samples = [st.Magnitudes.compress(some, sigma=1.0) for some in (lazy, y)]
    np.testing.assert_allclose(*(st.risk_curve(some, [2.0], sigma=1.0).risk for some in samples), rtol=1e-9)


def test_chunks_smaller_than_the_margin_do_not_matter(small, rng):
    """Rows of one entry, beside wide ones: tiles look 60 entries beyond their border."""
    check(scene(2, rng), choose="bands", levels=2, chunks=[((1, 2, 257), (1, 218, 1)), (260, 3)])


def test_blocks_in_chunks_are_refused_with_a_remedy(rng):
    with pytest.raises(TypeError, match="Sample their norms"):
        st.select_threshold(da.ones(10, dtype=complex), sigma=1.0)
    with pytest.raises(ValueError, match="NaN"):
        st.select_threshold(da.full(9000, np.nan, chunks=3000), sigma=1.0)


@pytest.mark.parametrize("size", [10_001, 10_000])
@pytest.mark.parametrize("rounded", [True, False])
def test_noise_level_of_coefficients_is_exact(rng, size, rounded):
    y = rng.normal(0.0, 3.0, size)
    y = np.rint(y) if rounded else y
    assert st.estimate_sigma(da.from_array(y, chunks=999)) == st.estimate_sigma(y)
    with pytest.raises(ValueError, match="1 NaN or infinite"):
        st.estimate_sigma(da.from_array(np.append(y, np.nan), chunks=999))


def test_noise_level_of_samples_is_told_by_crops(small, rng):
    y = scene(2, rng)
    assert st.estimate_sigma(da.from_array(y[:100, :100], chunks=30)) == st.estimate_sigma(y[:100, :100])
    found = [st.estimate_sigma(da.from_array(y, chunks=some)) for some in (37, 100)]
    assert found[0] == found[1] == pytest.approx(2.0, rel=0.1)


def test_scores_of_blocks_are_those_in_memory(small, rng):
    """Weights are local means: at the border of a tile they need its neighbours."""
    y = rng.poisson(np.abs(scene(2, rng)) + 5).astype(np.float64)
    denoiser = st.Denoiser(noise="poisson")
    _, _, (values, back) = denoiser.stabilised(y)
    known = fit.measure(read_source(da.from_array(y, chunks=50), None, None, None), denoiser)
    np.testing.assert_allclose(known.statistics.scores[0], crops.block_scores(back.batch(0, values[0])), rtol=1e-5)
    assert known.statistics.clip_limits == back.clip_limits


def test_predictions_of_one_task_and_of_many_are_numbers_once_computed(rng):
    for shape in ((40, 50), (2100, 2050)):
        found = st.Denoiser(sigma=1.0, choose="bands").run(da.from_array(rng.normal(size=shape), chunks=500))
        assert float(found.stderr) > 0
        assert isinstance(found.predicted_mse.compute(), float)
