"""Many small problems in one call: the same as one by one."""

import numpy as np
import pytest

import scorethresh as st
from scorethresh.select.many import SelectionBatch


@pytest.fixture
def rows(rng):
    """Pure noise, spikes, dense signals, outliers far beyond the fit, and a row of zeros."""
    y = rng.normal(size=(14, 300))
    y[4:8, :20] += 6 * rng.normal(size=(4, 20))
    y[8:11] += rng.normal(0.0, 4.0, (3, 300))
    y[11, 0], y[12, :3] = 40.0, (12.0, 15.0, 200.0)
    y[13] = 0.0
    return y


def signals(rng, count=5, size=200):
    t = np.arange(size)
    clean = 5 * np.sin(t / 20 + rng.uniform(0, 6, (count, 1))) + 3 * (t > size // 2)
    return clean + rng.normal(size=clean.shape)


@pytest.mark.parametrize("rule", ["hard", "soft", st.Firm(2.5)])
def test_thresholds_of_rows_are_those_one_by_one(rows, rule):
    levels = np.linspace(1.0, 3.0, len(rows))
    batch = st.select_threshold((rows * levels[:, None]).T, sigma=levels, rule=rule, batch_axis=1)
    each = [st.select_threshold(row * s, sigma=s, rule=rule) for row, s in zip(rows, levels, strict=True)]
    np.testing.assert_allclose(batch.threshold, [one.threshold for one in each], rtol=1e-12)
    np.testing.assert_allclose(batch.risk, [one.risk for one in each], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(batch.dof, [one.dof for one in each], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(batch.misfit, [one.misfit for one in each], atol=1e-6)
    np.testing.assert_array_equal(batch.estimate[:, 5], each[5].estimate)
    assert batch[-2].threshold == each[-2].threshold
    assert len(batch) == len(rows)
    assert "14 samples" in repr(batch)


@pytest.mark.parametrize("options", [{"method": "score"}, {"method": "universal"}, {"thresholds": [1.0, 2.0, 4.0]}])
def test_other_methods_loop(rows, options):
    batch = st.select_threshold(rows, sigma=1.0, batch_axis=0, **options)
    assert isinstance(batch, SelectionBatch)
    assert list(batch.threshold) == [st.select_threshold(row, sigma=1.0, **options).threshold for row in rows]


def test_pooled_rows_share_one_threshold(rows):
    levels = np.linspace(1.0, 3.0, len(rows))
    batch = st.select_threshold(rows * levels[:, None], sigma=levels, batch_axis=0, pooled=True)
    expected = st.select_threshold(rows, sigma=1.0)
    np.testing.assert_allclose(batch.threshold / levels, expected.threshold)
    assert (batch.risk / levels**2).sum() == pytest.approx(expected.risk)


@pytest.mark.parametrize("pooled", [True, False])
def test_shrunk_rows_are_those_one_by_one(rows, pooled):
    found = st.shrink(rows, sigma=1.0, batch_axis=0, pooled=pooled)
    if pooled:
        np.testing.assert_allclose(found.estimate, st.shrink(rows, sigma=1.0).estimate)
        return
    each = [st.shrink(row, sigma=1.0) for row in rows]
    np.testing.assert_allclose(found.estimate, [one.estimate for one in each])
    np.testing.assert_allclose(found.risk, [one.risk for one in each])
    assert "sigma 1" in repr(found)


@pytest.mark.parametrize(
    "options", [{"choose": "bands"}, {"choose": "bands", "rule": "soft", "sigma": 1.0}, {"choose": "fast"}, {}]
)
def test_denoised_rows_are_those_one_by_one(rng, options):
    y = signals(rng, 3 if options.get("choose") != "bands" else 5)
    y[1] *= 7.0 if "sigma" not in options else 1.0
    found = st.Denoiser(batch_axis=1, **options).run(y.T)
    each = [st.Denoiser(**options).run(row) for row in y]
    # In single precision. Where two patches are as near to a third, rounding may choose the other one.
    atol, rtol = (1e-2, 1e-2) if not options else (1e-5, 1e-6)
    np.testing.assert_allclose(found.estimate.T, [one.estimate for one in each], atol=atol * found.sigma.max())
    for name in ("sigma", "predicted_mse", "stderr"):
        np.testing.assert_allclose(getattr(found, name), [getattr(one, name) for one in each], rtol=rtol)
    assert len(found.plans) == len(y)
    again = found.plans[0].apply(st.denoising.batch.Batch(y[:1, None] / found.sigma[0]))
    assert again.value.shape == (1, 1, 200)
    assert "samples" in found.verdict or found.warnings


def test_rows_that_differ_are_treated_one_by_one(rng):
    """Gaps, constant rows, levels and masks of their own."""
    y = signals(rng)
    y[1, 20:25] = np.nan
    y[2] = 3.0
    mask = np.zeros(y.shape, bool)
    mask[3, 7] = True
    sigma = np.array([1.0, 1.0, 1.0, 1.0, 2.0])
    found = st.Denoiser(choose="bands", batch_axis=0, sigma=sigma, mask=mask).run(y)
    for k, row in enumerate(y):
        one = st.Denoiser(choose="bands", sigma=sigma[k], mask=mask[k]).run(row)
        np.testing.assert_allclose(found.estimate[k], one.estimate, atol=1e-10)
        assert found.predicted_mse[k] == pytest.approx(one.predicted_mse)


def test_images_in_a_batch(rng):
    y = rng.normal(size=(32, 3, 40, 2)) + 5.0
    found = st.denoise(y, sigma=1.0, choose="bands", batch_axis=1, channel_axis=3)
    expected = st.denoise(y[:, 2], sigma=1.0, choose="bands", channel_axis=2)
    np.testing.assert_allclose(found[:, 2], expected, atol=1e-10)


@pytest.mark.parametrize("choose", ["bands", "fast"])
def test_pooled_rows_share_noise_and_thresholds(rng, choose):
    y = signals(rng, 12)
    found = st.Denoiser(choose=choose, batch_axis=0, pooled=True).run(y)
    assert np.ptp(found.sigma) == 0
    assert found.sigma[0] == pytest.approx(1.0, rel=0.1)
    plans = {tuple(plan.experts.thresholds[0].thresholds) for plan in found.plans}
    assert len(plans) == 1
    clean = signals(np.random.default_rng(0), 12)  # of the same law; only the shape is used
    assert found.estimate.shape == clean.shape
    assert 0 < found.predicted_mse.mean() < 0.4


def test_pooled_rows_may_have_a_map_of_levels_each(rng):
    """Constant maps are levels."""
    levels = np.linspace(1.0, 2.0, 5)
    y = signals(rng, 5) * levels[:, None]
    options = {"choose": "bands", "batch_axis": 0, "pooled": True}
    found = st.denoise(y, sigma=np.repeat(levels[:, None], 200, 1), **options)
    np.testing.assert_allclose(found, st.denoise(y, sigma=levels, **options), rtol=1e-5)


def test_what_is_no_batch_is_told(rng):
    y = signals(rng)
    for call in (
        lambda: st.denoise(y, batch_axis=2),
        lambda: st.denoise(y[0], batch_axis=0),
        lambda: st.select_threshold(y[0], sigma=1.0, batch_axis=0),
    ):
        with pytest.raises(ValueError, match="batch_axis must be one of several axes"):
            call()
    with pytest.raises(ValueError, match="must be different axes"):
        st.denoise(y, batch_axis=0, channel_axis=0)
    with pytest.raises(ValueError, match="one per sample"):
        st.select_threshold(y, sigma=[1.0, 2.0], batch_axis=0)


def test_a_batch_has_no_map_and_needs_samples(rng):
    y = rng.normal(size=(2, 64))
    with pytest.raises(ValueError, match="no map of the error of a batch"):
        st.Denoiser(batch_axis=0, choose="bands").run(y).error_map()
    with pytest.raises(ValueError, match="no samples along batch_axis 0"):
        st.denoise(y[:0], batch_axis=0)
    with pytest.raises(ValueError, match="batch_axis must be one of several axes of y"):
        st.denoise(y, batch_axis="time")


@pytest.mark.parametrize("pooled", [False, True])
def test_the_verdict_says_of_how_many_samples_it_holds(rng, pooled):
    """A tone is nowhere flat, so nothing can be compared there. A batch was once said to fit without a look at it."""
    steps = np.repeat([0.0, 9.0, -5.0, 3.0], 512)
    tone = 20 * np.sin(np.arange(steps.size) * 0.3)
    y = np.stack([steps, steps[::-1], tone]) + rng.normal(size=(3, steps.size))
    found = st.Denoiser(sigma=1.0, choose="bands", batch_axis=0, pooled=pooled).run(y)
    assert "White Gaussian noise fits what was removed. (In 2 of 3 samples.)" in found.verdict
    assert "No region is flat enough to test that. (In 1 of 3 samples.)" in found.verdict


@pytest.mark.parametrize("choose", ["bands", "fast"])
@pytest.mark.parametrize("pooled", [False, True])
def test_every_sample_of_a_batch_is_judged(rng, choose, pooled):
    y = rng.normal(size=(3, 4096))
    y[1] *= 2
    with pytest.warns(st.AssumptionWarning, match=r"too high.* \(In 2 of 3 samples.\)"):
        found = st.Denoiser(sigma=2.0, choose=choose, batch_axis=0, pooled=pooled).run(y)
    assert "too high" in found.verdict
    assert "White Gaussian noise fits what was removed. (In 1 of 3 samples.)" in found.verdict


@pytest.mark.parametrize("size", [33, 100])
def test_predictions_of_short_pooled_signals(size):
    """They were 3 to 6 times too high. 32 signals, whose errors vary by a half: the mean is known to 10%."""
    clean = 4 * np.sin(np.arange(size) / 20)
    y = clean + np.random.default_rng(size).normal(size=(32, size))
    found = st.Denoiser(batch_axis=0, pooled=True, choose="fast", sigma=1.0).run(y)
    true = np.mean((found.estimate - clean) ** 2, axis=1)
    assert np.mean(found.predicted_mse) == pytest.approx(true.mean(), rel=0.4)
    assert np.mean(np.abs(found.predicted_mse - true) < 2 * found.stderr) > 0.7


@pytest.mark.parametrize("constant", [slice(0, 1), slice(None)])
def test_pooled_results_name_the_noise_of_constant_samples(rng, constant):
    y = 5 * np.sin(np.linspace(0, 6, 200)) + rng.normal(size=(6, 200))
    y[constant] = 3.0
    found = st.Denoiser(batch_axis=0, pooled=True).run(y)
    assert found.noise.name in repr(found)


@pytest.mark.parametrize("pooled", [False, True])
def test_errors_name_the_samples(rng, pooled):
    y = signals(rng, count=12)
    y[[2, 5]] = np.nan
    with pytest.raises(ValueError, match=r"^samples 2, 5 along batch_axis 0: every entry .* leave them out"):
        st.denoise(y, batch_axis=0, pooled=pooled)
    y[2:9] = np.nan
    with pytest.raises(ValueError, match=r"^samples 2, 3, 4, 5, 6 and 2 more along batch_axis 1: every entry"):
        st.denoise(y.T, batch_axis=1, pooled=pooled)
    y[2:9] = 0.0
    y[11, 3] = np.inf
    with pytest.raises(ValueError, match=r"^sample 11 along batch_axis 0: y holds 1 infinite .* leave it out"):
        st.denoise(y, batch_axis=0, pooled=pooled)
