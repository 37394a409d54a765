"""Patches that look alike: how they are found and combined, and the non-local expert made of them."""

from dataclasses import replace

import numpy as np
import pytest
import pywt
from hypothesis import given, settings
from hypothesis import strategies as some

import scorethresh as st
from oracles import nearest_patches, ridge_estimate
from scorethresh import _kernels
from scorethresh.denoising.batch import Batch
from scorethresh.denoising.experts.nonlocal_ridge import KEPT_NOISE, PATCHES, NonlocalRidge
from scorethresh.denoising.probe import PROBE_STEP, Probe
from scorethresh.denoising.refine import Refinement, fit_refinement
from scorethresh.frames.patches import LEAST_POWER, Patches
from scorethresh.noise.covariance import White
from scorethresh.risk.estimate import Estimate
from scorethresh.risk.monte_carlo import monte_carlo_divergence

CAMERA = pywt.data.camera().astype(float)
SHAPES = {1: (200,), 2: (24, 31), 3: (10, 11, 9)}
SMALL = {1: Patches((64,), 32, 40), 2: Patches((8, 8), 4, 5), 3: Patches((4, 4, 4), 3, 3)}


def as_volume(sides):
    return (1,) * (3 - len(sides)) + tuple(sides)


def offsets_of(patches):
    axes = [range(-patches.search, patches.search + 1) if b > 1 else range(1) for b in as_volume(patches.block)]
    return np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 3)


def starts_of(shape, patches):
    """Every step-th entry, and the last one that fits."""
    axes = [
        sorted({*range(0, n - b + 1, patches.step), n - b})
        for n, b in zip(as_volume(shape), as_volume(patches.block), strict=True)
    ]
    return np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 3)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_groups_hold_the_nearest_patches(rng, ndim, parts, dtype):
    shape, patches = SHAPES[ndim], SMALL[ndim]
    x = rng.normal(size=(parts, *shape)).astype(dtype)
    found = patches.match(x)
    starts = starts_of(shape, patches)
    assert found.shape == (len(starts), _kernels.MEMBERS)
    volume = x.astype(float).reshape(parts, *as_volume(shape))
    for start, places in zip(starts, found, strict=True):
        known = {at: d for d, at in nearest_patches(volume, as_volume(patches.block), start, offsets_of(patches))}
        assert places[0] == np.ravel_multi_index(start, as_volume(shape))
        assert len(set(places)) == len(places)
        distances = [known[at] for at in places]
        # Rounding of sums of squares.
        np.testing.assert_allclose(distances, sorted(known.values())[: len(places)], rtol=1e-5)


def test_ties_go_to_near_patches_and_few_patches_are_filled_up():
    """All patches of a constant are alike. Of 3 x 3 patches each is used once, and the reference for the rest."""
    found = Patches((8, 8), 4, 18).match(np.zeros((1, 40, 40), np.float32))
    middle = found[5 * 9 + 5]
    away = np.abs(np.stack(np.unravel_index(middle, (40, 40))) - 20).max(axis=0)
    assert away.max() == 3  # 32 of the 49 offsets up to 3
    few = Patches((8, 8), 4, 18).match(np.zeros((1, 10, 10), np.float32))
    assert all(len(set(places)) == 9 for places in few)
    assert (few[:, 9:] == few[:, :1]).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("share", [0.0, 0.2])
@pytest.mark.parametrize(("ndim", "parts"), [(1, 1), (2, 1), (2, 2), (3, 1)])
def test_patches_are_combined_by_ridge_regression(rng, ndim, parts, share, dtype):
    """Value and divergence are those of the matrices written out; edges and noise as in pictures."""
    shape, patches = SHAPES[ndim], SMALL[ndim]
    pilot = 3.0 * np.sign(rng.normal(size=(parts, *shape))).cumsum(axis=-1).astype(dtype) / 4
    data = (pilot + rng.normal(size=pilot.shape)).astype(dtype)
    places = patches.match(pilot)
    found = patches.combine(places, pilot, data, 0.7, share)
    block = as_volume(patches.block)
    volumes = [v.astype(float).reshape(parts, *as_volume(shape)) for v in (pilot, data)]
    value, divergence = ridge_estimate(*volumes, block, places, 0.7, share, LEAST_POWER)
    assert found.value.dtype == found.divergence.dtype == np.dtype(dtype)
    # Single precision, in which small groups are solved for both: 1e-3 noise levels is what the loop promises.
    np.testing.assert_allclose(found.value, value.reshape(data.shape), rtol=0, atol=7e-4)
    np.testing.assert_allclose(found.divergence, divergence.reshape(shape), rtol=0, atol=7e-4)


@pytest.mark.parametrize(("contrast", "largest"), [(0.1, 1 / LEAST_POWER), (1e6, 1.0)])
def test_weights_are_bounded(rng, contrast, largest):
    """The first column is in one patch only. If hardly any noise is let through, its weight is that of LEAST_POWER."""
    pilot = contrast * rng.normal(size=(1, 1, 8, 39))
    places = np.arange(_kernels.MEMBERS, dtype=np.int32)[None]
    found = _kernels.ridge_groups(pilot, pilot, (1, 8, 8), places, _kernels.Ridge(1.0, 0.0, LEAST_POWER))
    np.testing.assert_allclose(found.weight.reshape(8, 39)[:, 0], largest, rtol=1e-4)


def test_the_response_to_noise_has_the_divergence(rng):
    """For given patches and pilot the last step is linear: its divergence is the mean of noise times response."""
    _, batch, pilot = noisy_picture(rng)
    noise = rng.normal(size=(1, 16, 128, 128)).astype(np.float32)
    expert, steps = NonlocalRidge.fit(PATCHES[2], 1.0, batch, pilot, noise)
    alone = expert.steps(batch, pilot)
    assert alone.response.size == 0
    np.testing.assert_array_equal(alone.value, steps.value)
    products = np.mean(noise * steps.response, axis=(0, 2, 3))
    assert abs(np.mean(products) - steps.divergence.mean()) < 4 * np.std(products, ddof=1) / 4
    assert np.std(products, ddof=1) / 4 < 0.02 * steps.divergence.mean()


@pytest.mark.parametrize("share", [0.0, 0.2])
@pytest.mark.parametrize("parts", [1, 2])
def test_more_data_are_combined_as_the_data_are(rng, parts, share):
    """They do not decide, also where the data do."""
    patches = SMALL[2]
    pilot, data, more = rng.normal(size=(3, parts, *SHAPES[2]))
    places = patches.match(pilot)
    found = patches.combine(places, pilot, np.concatenate([data, 3 * data, data + more]), 1.0, share)
    alone = patches.combine(places, pilot, data, 1.0, share)
    np.testing.assert_array_equal(found.value[:parts], alone.value)
    np.testing.assert_array_equal(found.divergence, alone.divergence)
    np.testing.assert_allclose(found.value[parts : 2 * parts], 3 * alone.value, rtol=0, atol=1e-5)
    if not share:
        expected = alone.value + patches.combine(places, pilot, more, 1.0).value
        np.testing.assert_allclose(found.value[2 * parts :], expected, rtol=0, atol=1e-5)


def test_copies_of_a_patch_count_together(rng):
    """Where there are fewer patches than a group holds, the reference fills up."""
    patches = Patches((8, 8), 4, 2)
    pilot = rng.normal(size=(1, 12, 13))
    data = pilot + rng.normal(size=pilot.shape)
    places = patches.match(pilot)
    assert len(set(places[0])) == 9
    found = patches.combine(places, pilot, data, 0.5)
    value, divergence = ridge_estimate(pilot[:, None], data[:, None], (1, 8, 8), places, 0.5, 0.0, LEAST_POWER)
    np.testing.assert_allclose(found.value, value[:, 0], rtol=0, atol=7e-4)
    np.testing.assert_allclose(found.divergence, divergence[0], rtol=0, atol=7e-4)


@pytest.mark.parametrize("contrast", [1, 8, 12, 20, 1e3, 1e5, 1e9])
def test_rounding_stays_below_the_noise(rng, contrast):
    """Up to some 17 noise levels of contrast in single precision, then in double, then patches stay as they are."""
    patches = SMALL[2]
    texture = np.cumsum(np.cumsum(rng.normal(size=(1, 24, 32)), axis=1), axis=2)
    pilot = contrast * texture / texture.std()
    data = pilot + rng.normal(size=pilot.shape)
    places = patches.match(pilot)
    found = patches.combine(places, pilot, data, 1.0)
    value, _ = ridge_estimate(pilot[:, None], data[:, None], (1, 8, 8), places, 1.0, 0.0, LEAST_POWER)
    tolerance = 1e-3 if contrast < 1e6 else 3.0  # there, nothing is removed: three noise levels at most
    np.testing.assert_allclose(found.value, value[:, 0], rtol=0, atol=tolerance)


@given(seed=some.integers(0, 10**6), offset=some.floats(-1e4, 1e4), scale=some.floats(0.01, 100))
@settings(max_examples=20, deadline=None)
def test_a_shift_and_a_unit_change_nothing_else(seed, offset, scale):
    rng = np.random.default_rng(seed)
    patches = SMALL[2]
    pilot, data = rng.normal(size=(2, 1, 20, 20))
    places = patches.match(pilot)
    plain = patches.combine(places, pilot, data, 0.5)
    moved = patches.combine(places, offset + scale * pilot, offset + scale * data, 0.5 * scale)
    np.testing.assert_allclose((moved.value - offset) / scale, plain.value, rtol=0, atol=1e-4)
    np.testing.assert_allclose(moved.divergence, plain.divergence, rtol=0, atol=1e-4)


def test_the_divergence_of_a_step_is_that_by_monte_carlo(rng):
    """For given groups, pilot and weights a step is linear, so differences are exact; four standard errors."""
    patches = PATCHES[2]
    pilot = (CAMERA[100:200, 100:200] / 20)[None]
    data = pilot + rng.normal(size=pilot.shape)
    places = patches.match(pilot)
    value, stderr = monte_carlo_divergence(
        lambda y: patches.combine(places, pilot, y, 1.0).value, data, rng.normal(size=(16, *data.shape)), 0.1
    )
    assert abs(patches.combine(places, pilot, data, 1.0).divergence.sum() - value) < 4 * stderr
    assert stderr < 0.02 * value


def test_threads_and_bands_change_rounding_only(rng, monkeypatch):
    from scorethresh.frames import patches as module

    x = rng.normal(size=(1, 70, 90)).astype(np.float32)
    data = x + rng.normal(size=x.shape).astype(np.float32)
    patches = PATCHES[2]
    places = patches.match(x)
    whole = patches.combine(places, x, data, 1.0)
    monkeypatch.setattr(module, "BAND", 40)
    np.testing.assert_array_equal(patches.match(x), places)
    banded = patches.combine(places, x, data, 1.0)
    np.testing.assert_allclose(banded.value, whole.value, rtol=0, atol=1e-5)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    np.testing.assert_array_equal(patches.combine(places, x, data, 1.0).value, banded.value)


def test_patches_refuse_what_the_loops_are_not_made_for():
    for block in ((4, 8), (8, 8, 8), (16, 3)):
        with pytest.raises(ValueError, match="sides of a patch must be powers of 2 with product 64"):
            Patches(block, 1, 2)
    with pytest.raises(ValueError, match="step must lie between 1 and 4, or entries are left out, got 5"):
        Patches((4, 4, 4), 5, 2)
    assert not Patches((8, 8), 4, 18).fit((7, 500))
    assert Patches((8, 8), 4, 18).fit((8, 39))
    assert not Patches((8, 8), 4, 18).fit((8, 38))


# The expert.


def noisy_picture(rng, sigma=1.0):
    clean = CAMERA[60:188, 90:218] / 20
    y = (clean + rng.normal(0.0, sigma, clean.shape)).astype(np.float32)[None, None]
    pilot = st.denoise(y[0, 0], sigma=sigma, choose="fast")[None, None]
    return clean, Batch(y), pilot


def test_the_expert_improves_on_its_pilot(rng):
    """By more than 5% on a photograph, in any unit; levels fall as noise is removed, and a plan repeats the fit."""
    clean, batch, pilot = noisy_picture(rng)
    expert, estimate = NonlocalRidge.fit(PATCHES[2], 1.0, batch, pilot)
    before, after = (np.mean((v[0, 0] - clean) ** 2) for v in (pilot, estimate.value))
    assert after < 0.95 * before
    assert expert.levels[0] == 1.0
    assert all(a > b > kept for a, b, kept in zip(expert.levels, expert.levels[1:], KEPT_NOISE, strict=False))
    np.testing.assert_array_equal(expert.apply(batch, pilot).value, estimate.value)
    scaled, other = NonlocalRidge.fit(PATCHES[2], 2.0, Batch(2 * batch.values), 2 * pilot)
    np.testing.assert_allclose(scaled.levels, 2 * np.array(expert.levels), rtol=1e-5)
    np.testing.assert_allclose(other.value, 2 * estimate.value, rtol=0, atol=2e-3)
    np.testing.assert_allclose(other.divergence, 4 * estimate.divergence, rtol=0, atol=2e-3)


def test_missing_entries_do_not_count_in_the_levels(rng):
    """Where entries were filled in, nothing is removed. They would let the noise look smaller than it is."""
    _, batch, pilot = noisy_picture(rng)
    valid = np.ones(batch.values[:, 0].shape, bool)
    valid[:, 32:96] = False
    filled = np.where(valid[:, None], batch.values, pilot)
    expert, _ = NonlocalRidge.fit(PATCHES[2], 1.0, Batch(filled, valid), pilot)
    ignorant, _ = NonlocalRidge.fit(PATCHES[2], 1.0, Batch(filled), pilot)
    complete, _ = NonlocalRidge.fit(PATCHES[2], 1.0, batch, pilot)
    assert abs(expert.levels[1] - complete.levels[1]) < 0.05 < ignorant.levels[1] - complete.levels[1]


def test_a_guide_decides_what_is_compared(rng):
    """With patches of a constant guide only near ones are combined; errors grow, and the estimate is another one."""
    clean, batch, pilot = noisy_picture(rng)
    expert, estimate = NonlocalRidge.fit(PATCHES[2], 1.0, batch, pilot)
    itself = expert.apply(Batch(batch.values, guide=pilot), pilot)
    np.testing.assert_array_equal(itself.value, estimate.value)
    blind = expert.apply(Batch(batch.values, guide=np.zeros_like(pilot)), pilot)
    assert np.mean((blind.value[0, 0] - clean) ** 2) > 1.01 * np.mean((estimate.value[0, 0] - clean) ** 2)


def test_the_expert_needs_a_pilot():
    with pytest.raises(ValueError, match=r"patches are compared in a pilot\. Pass a first estimate of the same shape"):
        NonlocalRidge(PATCHES[2], (1.0, 0.6, 0.3)).apply(Batch(np.zeros((1, 1, 20, 20), np.float32)))


@pytest.mark.slow
def test_the_divergence_through_everything_is_right(rng):
    """The correction by one probe, against the covariance of noise and estimate over many draws.

    E <w, x> is the divergence. Its spread over draws gives the tolerance, to which the correction may add 4%: it is
    found with references twice as far apart.
    """
    clean = CAMERA[60:188, 90:218]
    products, divergences = [], []
    for _ in range(12):
        w = rng.normal(0.0, 20.0, clean.shape)
        found = st.Denoiser(sigma=20.0).run(clean + w)
        plan = found.plans[0]
        assert plan.refinement.weight > 0.3
        products.append(np.mean(w * (found.estimate - clean)))
        # From the unbiased risk, whose other terms are known.
        batch = Batch((clean + w).astype(np.float32)[None, None] / 20)
        divergences.append(400 * plan.apply(batch).divergence.mean())
    error = np.std(np.subtract(products, divergences), ddof=1) / np.sqrt(len(products))
    assert abs(np.mean(products) - np.mean(divergences)) < 4 * error + 0.04 * np.mean(products)
    assert error < 0.02 * np.mean(products)


def test_the_refinement_blends_values_and_divergences(rng):
    _, batch, pilot = noisy_picture(rng)
    expert, estimate = NonlocalRidge.fit(PATCHES[2], 1.0, batch, pilot)
    local = Estimate(pilot, np.full((1, 128, 128), 0.1))
    calls = []
    blended = Refinement(expert, 0.7, 0.25).apply(batch, local, lambda: calls.append(1))
    np.testing.assert_allclose(blended.value, 0.75 * pilot + 0.25 * estimate.value, rtol=0, atol=1e-5)
    np.testing.assert_allclose(blended.divergence, 0.075 + 0.25 * 0.7 * estimate.divergence, rtol=0, atol=1e-6)
    assert len(calls) == 1 + len(KEPT_NOISE)


@pytest.mark.parametrize("side", [40, 600])  # the whole, and patches of it
def test_a_probe_takes_guide_weights_and_gaps_along(rng, side):
    values = rng.normal(size=(1, 1, side, side)).astype(np.float32)
    batch = Batch(values, values[:, 0] > -1, np.square(values[:, 0]), 2 * values)
    probe = Probe.draw(batch, White(1.0))
    assert probe.whole == (side == 40)
    np.testing.assert_array_equal(probe.guide, 2 * probe.y)
    np.testing.assert_allclose(probe.weighted_noise, probe.noise * probe.y**2 * (probe.y > -1), rtol=1e-6)
    np.testing.assert_array_equal(Probe.draw(Batch(values, guide=2 * values), White(1.0)).guide, 2 * probe.y)


def test_a_correction_by_a_part_that_is_the_whole_is_the_same(rng):
    """Both are found with the patches of the guide, and through pilots that move."""
    _, batch, pilot = noisy_picture(rng)
    batch = Batch(batch.values, guide=pilot[..., ::-1].copy())
    probe, local = Probe.draw(batch, White(1.0)), Estimate(pilot, np.full((1, 1, 1), 0.1))
    pilots = [pilot, *(pilot + 0.1 * (y - batch.values) for y in probe.moved)]
    whole = fit_refinement(batch, White(1.0), local, probe, pilots)
    part = fit_refinement(batch, White(1.0), local, replace(probe, whole=False), pilots)
    assert part.refinement.correction == pytest.approx(whole.refinement.correction, rel=1e-6)
    # Written out: the derivative through everything, over the response for given patches and pilot.
    expert = whole.refinement.expert
    steps = expert.steps(batch, pilot, probe.noise)
    ahead, behind = (
        expert.apply(Batch(y, guide=batch.guide), x).value for y, x in zip(probe.moved, pilots[1:], strict=True)
    )
    change, response = (ahead - behind) / (2 * PROBE_STEP), steps.response
    expected = np.sum(probe.noise * change) / np.sum(probe.noise * response)
    assert whole.refinement.correction == pytest.approx(expected, rel=1e-4)
    fixed = fit_refinement(batch, White(1.0), local, probe, [pilot] * len(pilots))
    assert whole.refinement.correction > 1.005 * fixed.refinement.correction
    np.testing.assert_allclose(whole.estimate.value, whole.refinement.apply(batch, local).value, rtol=0, atol=1e-6)


# The denoiser with it.


def test_photographs_gain_from_patches_that_look_alike(rng):
    """More than 0.2 dB over the fast choice, and at each noise level; weights sum to 1 and name the expert."""
    clean = CAMERA[60:188, 90:218]
    for sigma in (10.0, 30.0):
        y = clean + rng.normal(0.0, sigma, clean.shape)
        errors = {c: np.mean((st.denoise(y, sigma=sigma, choose=c) - clean) ** 2) for c in ("blend", "fast")}
        assert errors["blend"] < 0.955 * errors["fast"]
    found = st.Denoiser(sigma=30.0).run(y)
    assert found.weights["patches that look alike"] > 0.5
    assert sum(found.weights.values()) == pytest.approx(1)


def test_colours_share_the_comparison(rng):
    """Colour differences hold little to compare: patches found in the mean of the channels serve better."""
    luminance = CAMERA[60:188, 90:218]
    clean = np.stack([luminance, 0.8 * luminance + 20, 0.9 * luminance], axis=-1)
    y = clean + rng.normal(0.0, 30.0, clean.shape)
    found = st.Denoiser(sigma=30.0, channel_axis=-1).run(y)
    alone = np.stack([st.denoise(y[..., k], sigma=30.0) for k in range(3)], axis=-1)
    assert np.mean((found.estimate - clean) ** 2) < 0.75 * np.mean((alone - clean) ** 2)


def test_correlated_noise_and_small_data_go_without(rng):
    """Weights of patches are those for white noise, and a group needs 32 patches."""
    power = np.ones((64, 64))
    power[20:44] = 0.2
    y = rng.normal(size=(64, 64))
    assert st.Denoiser(noise=power).run(y).plans[0].refinement is None
    assert st.Denoiser(sigma=1.0).run(y[:10, :10]).plans[0].refinement is None
    assert st.Denoiser(sigma=1.0).run(y[:20, :20]).plans[0].refinement is not None


def test_repeated_beats_gain(rng):
    """The same for signals: beats at irregular times are averaged over the record."""
    n = np.arange(4096)
    at = np.cumsum(rng.integers(150, 190, 22))
    clean = sum(8 * np.exp(-(((n - t) / 5) ** 2)) + 3 * np.exp(-(((n - t - 40) / 14) ** 2)) for t in at)
    y = clean + rng.normal(size=n.size)
    errors = {c: np.mean((st.denoise(y, sigma=1.0, choose=c) - clean) ** 2) for c in ("blend", "fast")}
    assert errors["blend"] < 0.8 * errors["fast"]


def test_volumes_gain(rng):
    """A texture that continues through the slices."""
    z, y, x = np.mgrid[:24, :40, :40]
    clean = 6.0 * np.sign(np.sin((x + y) / 3.0) + 0.5 * np.sin(z / 4.0)) * (x > 12)
    noisy = clean + rng.normal(0.0, 3.0, clean.shape)
    errors = {c: np.mean((st.denoise(noisy, sigma=3.0, choose=c) - clean) ** 2) for c in ("blend", "fast")}
    assert errors["blend"] < 0.8 * errors["fast"]


def test_nothing_is_seen_beyond_the_reach(rng):
    """Tiles of a cluster are cut by it. The bound is sharp to within the patches that happen to be chosen."""
    expert = NonlocalRidge(Patches((8, 8), 4, 6), (1.0, 0.6, 0.3))
    pilot = rng.normal(size=(1, 1, 160, 24)).astype(np.float32)
    data = pilot + rng.normal(size=pilot.shape).astype(np.float32)
    other = data.copy()
    other[..., 80:, :] += 1.0
    far = 80 - expert.reach
    before, after = (expert.apply(Batch(y), pilot).value for y in (data, other))
    np.testing.assert_array_equal(before[..., :far, :], after[..., :far, :])
    assert expert.reach == 3 * 19
    assert (before[..., 80 - expert.reach // 2 : 80, :] != after[..., 80 - expert.reach // 2 : 80, :]).any()
