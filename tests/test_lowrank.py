"""Series of images and volumes: patches, divergences, the noise map, the prediction, and the door."""

import sys
import warnings

import numpy as np
import pytest

import oracles
import scorethresh as st
from scorethresh._threads import one_blas_thread
from scorethresh.denoising.lowrank.common_basis import common_basis
from scorethresh.denoising.lowrank.patches import PatchGrid
from scorethresh.denoising.lowrank.shrinkage import shrink_patches
from scorethresh.risk.singular_values import Shape, kernel_at, shrunk_values, spectral_divergence
from scorethresh.sklearn import ScorePCA


def series(rng, shape, volumes, rank=3, strength=3.0, complex_entries=False):
    """A smooth series of low rank with values of that strength."""
    from scipy.ndimage import gaussian_filter

    def field(*size, width):
        a = gaussian_filter(rng.normal(size=size), width)
        return a / a.std()

    maps = np.stack([field(*shape, width=3) for _ in range(rank)], axis=-1)
    courses = np.stack([field(volumes, width=1) for _ in range(rank)])
    clean = strength * maps @ courses / np.sqrt(rank)
    return clean * np.exp(1j * field(*shape, width=4))[..., None] if complex_entries else clean


def noise(rng, shape, complex_entries=False):
    w = rng.normal(size=shape)
    return w + 1j * rng.normal(size=shape) if complex_entries else w


@pytest.mark.parametrize(("shape", "patch", "step"), [((11, 9), (4, 3), (2, 3)), ((7, 8, 5), (3, 3, 5), (1, 2, 1))])
def test_patches_are_cut_out_and_added_up(shape, patch, step):
    rng = np.random.default_rng(0)
    a = rng.normal(size=(*shape, 2))
    grid = PatchGrid(shape, patch, step)
    for most in (1, 5, 1000):
        blocks = grid.blocks(most)
        assert sum(b.count for b in blocks) == np.prod([len(c) for c in grid.corners()])
        total = np.zeros(a.shape)
        for block in blocks:
            assert block.count <= most
            cut = block.cut(a[block.region])
            for k, corner in enumerate(
                np.stack(np.meshgrid(*block.corners, indexing="ij"), -1).reshape(-1, len(shape))
            ):
                place = tuple(slice(c, c + p) for c, p in zip(corner, patch, strict=True))
                assert np.array_equal(cut[k], a[place].reshape(-1, 2))
                total[place] += 1
            parts = np.zeros(tuple(s.stop - s.start for s in block.region))
            for part in block.split(3):
                parts[part.region] += part.add_up(np.ones((part.count, cut.shape[1])))
            assert np.array_equal(parts, block.add_up(np.ones(cut.shape[:2])))
        assert (total > 0).all()  # every entry lies in a patch


def few_patches(rng, rows, volumes, complex_entries):
    """Patches with two strong components each, the last two entries not valid."""
    y = np.stack(
        [
            30 * noise(rng, (rows, 2), complex_entries) @ noise(rng, (2, volumes), complex_entries) / np.sqrt(volumes)
            + noise(rng, (rows, volumes), complex_entries) / np.sqrt(1 + complex_entries)
            for _ in range(3)
        ]
    )
    valid = np.ones((3, rows), dtype=bool)
    valid[1, -2:] = False
    return y, valid


@pytest.mark.parametrize("complex_entries", [False, True])
@pytest.mark.parametrize(("rows", "volumes"), [(14, 6), (9, 12)])
def test_patches_are_shrunk_as_matrices(rows, volumes, complex_entries):
    y, valid = few_patches(np.random.default_rng([rows, complex_entries]), rows, volumes, complex_entries)
    found = shrink_patches(y, valid)
    for patch, known, value, divergence in zip(y, valid, found.value, found.divergence, strict=True):
        matrix = patch[known]
        form = Shape(len(matrix) - 1, volumes, 1 + complex_entries)
        mean = matrix.mean(axis=0)
        u, s, vh = np.linalg.svd(matrix - mean, full_matrices=False)
        rank = int(np.sum(s > form.edge))
        values, slopes = shrunk_values(s, rank, form)
        assert value[known] == pytest.approx(mean + (u[:, :rank] * values) @ vh[:rank], abs=1e-9)
        s = s[: min(len(matrix) - 1, volumes)]
        height = shrunk_values(np.append(s[:rank], form.edge), rank + 1, form)[0][-1]
        jump = height * kernel_at(s, form.edge, form).sum() / form.parts
        total = spectral_divergence(s, values, slopes, form) + volumes + jump
        # The jump's height leaves out the other spikes, which changes it by less than a tenth.
        assert divergence.sum() == pytest.approx(total, abs=1e-6 + 0.1 * jump)
        assert not value[~known].any()
        assert not divergence[~known].any()


@pytest.mark.parametrize("complex_entries", [False, True])
def test_divergence_of_a_row_is_that_of_the_jacobian(complex_entries):
    y, _ = few_patches(np.random.default_rng(5), 14, 6, complex_entries)
    valid = np.ones(y.shape[:2], dtype=bool)
    found = shrink_patches(y, valid)
    for row in (0, 7):

        def only_row(entries, row=row):
            changed = y[:1].copy()
            changed[0, row] = entries[0]
            return shrink_patches(changed, valid[:1]).value[0, [row]]

        slow = oracles.jacobian_trace(only_row, y[0, [row]]) / (1 + complex_entries)
        # Vectors of the bulk share their mean gain.
        assert found.divergence[0, row] == pytest.approx(slow, rel=0.03)


@pytest.mark.parametrize("complex_entries", [False, True])
@pytest.mark.parametrize(("rows", "volumes"), [(14, 6), (9, 12)])
def test_divergence_of_a_volume_is_that_of_the_jacobian(rows, volumes, complex_entries):
    y, valid = few_patches(np.random.default_rng(6), rows, volumes, complex_entries)
    found = shrink_patches(y, valid)
    assert found.of_volumes.sum(axis=1) == pytest.approx(found.divergence.sum(axis=1))
    for volume in (0, 3):

        def only_volume(entries, volume=volume):
            changed = y[:1].copy()
            changed[0, :, volume] = entries[:, 0]
            return shrink_patches(changed, valid[:1]).value[0][:, [volume]]

        slow = oracles.jacobian_trace(only_volume, y[0][:, [volume]]) / (1 + complex_entries)
        # Vectors of the bulk share their mean gain.
        assert found.of_volumes[0, volume] == pytest.approx(slow, rel=0.04)


def test_divergence_of_a_series_that_moves():
    """Many combinations of the frames hold signal, and the basis is fitted to all of them."""
    from scipy.ndimage import gaussian_filter, shift

    rng = np.random.default_rng(17)
    scene = gaussian_filter(rng.normal(size=(80, 80)), 2.0)
    scene *= 3 / scene.std()
    clean = np.stack([shift(scene, (0.3 * t, 0.15 * t))[20:60, 20:60] for t in range(24)], axis=-1)
    y = clean + rng.normal(size=clean.shape)
    run = st.LowRankDenoiser(sigma=1.0, patch=6).run
    found = run(y)
    divergence = (found.predicted_mse - np.mean((y - found.estimate) ** 2) + 1) / 2
    step, probes = 0.05, []
    for _ in range(8):
        z = rng.normal(size=y.shape)
        probes.append(np.mean(z * (run(y + step * z).estimate - run(y - step * z).estimate)) / (2 * step))
    assert divergence == pytest.approx(np.mean(probes), abs=2 * np.std(probes) / np.sqrt(8) + 0.005 * divergence)


def test_common_basis_keeps_the_signal_and_counts_its_own_noise():
    rng = np.random.default_rng(1)
    clean = 0.4 * rng.normal(size=(400, 3)) @ rng.normal(size=(3, 20))
    y = clean + rng.normal(size=clean.shape)
    basis = common_basis(y)
    assert basis.vectors.shape == (20, 3)
    assert np.linalg.norm(clean - clean @ basis.vectors @ basis.vectors.T) < 0.3 * np.linalg.norm(clean)

    def project(y):
        v = common_basis(y).vectors
        return y @ v @ v.T

    coordinates = y @ basis.vectors
    probes = []
    for _ in range(40):
        z = rng.normal(size=y.shape)
        probes.append(np.sum(z * (project(y + 1e-4 * z) - project(y - 1e-4 * z))) / 2e-4)
    extra = basis.divergence(coordinates, coordinates, gain=np.ones(3))
    assert np.mean(probes) == pytest.approx(400 * 3 + extra, abs=3 * np.std(probes) / np.sqrt(len(probes)))
    # That of truncated singular values, by Candes, Sing-Long and Trzasko.
    s = np.linalg.svd(y, compute_uv=False) ** 2
    exact = 3 * (400 + 20 - 3) + 2 * np.sum(s[3:] / (s[:3, None] - s[3:]))
    assert 400 * 3 + extra == pytest.approx(exact)
    # Half of the noise passes: a linear filter between the projections.
    half = basis.divergence(coordinates, 0.5 * coordinates, gain=np.full(3, 0.5))
    assert half == pytest.approx(0.5 * extra)


@pytest.mark.parametrize("complex_entries", [False, True])
def test_divergence_of_the_whole_is_that_of_differences(complex_entries):
    rng = np.random.default_rng(2)
    clean = series(rng, (24, 24), 16, complex_entries=complex_entries)
    y = clean + noise(rng, clean.shape, complex_entries)
    run = st.LowRankDenoiser(sigma=1.0, patch=5).run
    found = run(y)
    parts = 1 + complex_entries
    residual = np.mean(np.abs(y - found.estimate) ** 2) / parts
    divergence = (found.predicted_mse - residual + 1) / 2
    step, probes = 0.05, []
    for _ in range(8):
        z = noise(rng, y.shape, complex_entries)
        difference = run(y + step * z).estimate - run(y - step * z).estimate
        probes.append(np.mean((np.conj(z) * difference).real) / (2 * step) / parts)
    error = 3 * np.std(probes) / np.sqrt(len(probes))
    assert divergence == pytest.approx(np.mean(probes), abs=error + 0.03 * divergence)


@pytest.mark.parametrize("shape", [(30, 30), (12, 12, 10)])
def test_error_is_small_and_predicted(shape):
    off, off_blind = [], []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        clean = series(rng, shape, 20)
        y = 5 * (clean + noise(rng, clean.shape))
        for sigma, z in ((5.0, off), (None, off_blind)):
            found = st.LowRankDenoiser(sigma=sigma).run(y)
            loss = np.mean((found.estimate - 5 * clean) ** 2)
            assert loss < 0.15 * 25
            z.append((found.predicted_mse - loss) / found.stderr)
    # Eight draws: 99.7% of the means of standard normal numbers lie within 1.1.
    for z in (off, off_blind):
        assert abs(np.mean(z)) < 1.1
        assert np.sqrt(np.mean(np.square(z))) < 2


def test_noise_map_is_found():
    rng = np.random.default_rng(3)
    clean = series(rng, (40, 40), 24)
    level = 1 + 0.3 * np.linspace(-1, 1, 40)[:, None] * np.ones((1, 40))
    y = clean + level[..., None] * noise(rng, clean.shape)
    blind = st.LowRankDenoiser().run(y)
    assert np.mean(np.abs(blind.sigma / level - 1)) < 0.03
    # Given as a map, it is used as it is, and helps over its mean.
    given = st.LowRankDenoiser(sigma=level).run(y)
    assert np.array_equal(given.sigma, level)
    flat = st.LowRankDenoiser(sigma=1.0).run(y)
    losses = [np.mean((one.estimate - clean) ** 2) for one in (blind, given, flat)]
    assert losses[0] < 1.02 * losses[1]
    assert losses[1] < losses[2]
    assert given.predicted_mse == pytest.approx(losses[1], abs=3 * given.stderr)


def test_complex_level_is_that_of_one_part():
    rng = np.random.default_rng(13)
    clean = series(rng, (30, 30), 20, complex_entries=True)
    found = st.LowRankDenoiser().run(clean + 0.5 * noise(rng, clean.shape, True))
    assert np.mean(found.sigma) == pytest.approx(0.5, rel=0.02)


def test_the_size_of_least_risk_is_taken():
    rng = np.random.default_rng(14)
    for width in (1, 6):
        from scipy.ndimage import gaussian_filter

        maps = np.stack([gaussian_filter(rng.normal(size=(40, 40)), width) for _ in range(4)], axis=-1)
        clean = 2 * maps / maps.std() @ rng.normal(size=(4, 20))
        y = clean + noise(rng, clean.shape)
        risks = {size: st.LowRankDenoiser(sigma=1.0, patch=size).run(y).predicted_mse for size in (4, 6, 8)}
        found = st.LowRankDenoiser(sigma=1.0).run(y)
        assert found.predicted_mse == min(risks.values())
        assert found.patch == (min(risks, key=risks.get),) * 2


def test_error_map_shows_where_the_error_is():
    rng = np.random.default_rng(4)
    clean = series(rng, (48, 48), 24, rank=2)
    busy = series(rng, (48, 24), 24, rank=10, strength=4)
    clean[:, 24:] += busy
    y = clean + noise(rng, clean.shape)
    found = st.LowRankDenoiser(sigma=1.0).run(y)
    errors = found.error_map()
    true = np.mean((found.estimate - clean) ** 2, axis=-1)
    for half in (slice(None, 20), slice(28, None)):
        assert errors[:, half].mean() == pytest.approx(true[:, half].mean(), rel=0.25)
    assert errors[:, 28:].mean() > 1.5 * errors[:, :20].mean()
    assert found.rank[:, 28:].mean() > found.rank[:, :20].mean()


@pytest.mark.filterwarnings("ignore::scorethresh.AssumptionWarning")
def test_what_holds_no_data_is_left_as_it_is():
    rng = np.random.default_rng(5)
    clean = series(rng, (24, 20), 12)
    y = clean + noise(rng, clean.shape)
    y[3, 4, 5] = np.nan
    y[:4, :4] = 7.0  # constant over the series
    mask = np.zeros((24, 20), dtype=bool)
    mask[10:12, 5:8] = True
    found = st.LowRankDenoiser(sigma=1.0, mask=mask, patch=4).run(y)
    hidden = mask.copy()
    hidden[3, 4] = hidden[:4, :4] = True
    assert np.array_equal(found.estimate[hidden], y[hidden], equal_nan=True)
    assert np.isfinite(found.estimate[~hidden]).all()
    assert (found.sigma[hidden] == 0).all()
    assert np.isnan(found.error_map()[hidden]).all()
    # What hides there changes nothing elsewhere.
    other = y.copy()
    other[10:12, 5:8] = 1e6 * rng.normal(size=(2, 3, 12))
    again = st.LowRankDenoiser(sigma=1.0, mask=mask, patch=4).run(other)
    assert np.array_equal(again.estimate[~hidden], found.estimate[~hidden])
    # The same by a masked array, and by a mask of the whole shape.
    masked = np.ma.array(y, mask=np.broadcast_to(mask[..., None], y.shape))
    out = st.LowRankDenoiser(sigma=1.0, patch=4).run(masked).estimate
    assert isinstance(out, np.ma.MaskedArray)
    assert np.array_equal(out.data, found.estimate, equal_nan=True)
    whole = st.denoise_lowrank(y, sigma=1.0, patch=4, mask=np.broadcast_to(mask[..., None], y.shape))
    assert np.array_equal(whole, found.estimate, equal_nan=True)


def test_layout_and_dtype_are_kept():
    rng = np.random.default_rng(6)
    clean = series(rng, (16, 14, 6), 12)
    y = 100 + 20 * (clean + noise(rng, clean.shape))
    base = st.denoise_lowrank(y, sigma=20.0)
    for axis in range(4):
        moved = np.moveaxis(y, -1, axis)
        before = moved.copy()
        out = st.denoise_lowrank(moved, sigma=20.0, series_axis=axis)
        assert np.moveaxis(out, axis, -1) == pytest.approx(base, abs=1e-8)
        assert np.array_equal(moved, before)
    single = st.denoise_lowrank(y.astype("f4"), sigma=20.0)
    assert single.dtype == np.float32
    assert single == pytest.approx(base, abs=0.01)
    whole = st.denoise_lowrank(np.rint(y).astype("i2"), sigma=20.0)
    assert whole.dtype == np.int16
    assert np.abs(whole - base).mean() < 1  # rounding, and patches near the edge of the noise
    both = y + 20j * noise(rng, y.shape)
    assert st.denoise_lowrank(both.astype("c8"), sigma=20.0).dtype == np.complex64
    assert repr(st.LowRankDenoiser(sigma=20.0).run(y)).startswith("<LowRankDenoised: 16 x 14 x 6 x 12 float64")


def test_scaling_and_threads_change_nothing(monkeypatch):
    rng = np.random.default_rng(7)
    clean = series(rng, (40, 40, 6), 12)
    y = clean + noise(rng, clean.shape)
    one = st.LowRankDenoiser(patch=3).run(y)
    scaled = st.LowRankDenoiser(patch=3).run(1e-6 * y)
    assert scaled.estimate * 1e6 == pytest.approx(one.estimate, abs=1e-8)
    assert scaled.predicted_mse * 1e12 == pytest.approx(one.predicted_mse)
    for scale in (1e-150, 1e150):
        extreme = st.LowRankDenoiser(patch=3, sigma=scale).run(scale * y)
        assert extreme.stderr / scale / scale == pytest.approx(st.LowRankDenoiser(patch=3, sigma=1.0).run(y).stderr)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert np.array_equal(st.LowRankDenoiser(patch=3).run(y).estimate, one.estimate)


def test_series_without_noise_are_returned():
    clean = np.ones((10, 10, 12)) * np.arange(12.0)
    found = st.LowRankDenoiser().run(clean)
    assert np.array_equal(found.estimate, clean)
    assert found.predicted_mse == 0
    assert np.isnan(st.LowRankDenoiser().run(np.ones((10, 10, 12))).error_map()).all()


def test_a_level_that_cannot_be_told_is_warned_about():
    rng = np.random.default_rng(8)
    with pytest.warns(st.AssumptionWarning, match="Pass sigma"):
        st.denoise_lowrank(rng.normal(size=(12, 12, 6)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        st.denoise_lowrank(rng.normal(size=(12, 12, 6)), sigma=1.0)


def test_a_series_that_is_not_of_low_rank_is_warned_about():
    rng = np.random.default_rng(12)
    y = series(rng, (40, 40), 20, rank=8, strength=8.0) + rng.normal(size=(40, 40, 20))
    with pytest.warns(st.AssumptionWarning, match="not of low rank: 4.% of the combinations"):
        found = st.LowRankDenoiser().run(y)
    assert found.stderr > 3 * st.LowRankDenoiser(sigma=1.0).run(y).stderr


def test_a_level_that_is_too_large_is_warned_about():
    rng = np.random.default_rng(15)
    y = np.abs(rng.normal(size=(30, 30, 12)) + 1j * rng.normal(size=(30, 30, 12)))
    with pytest.warns(st.AssumptionWarning, match="below zero.*complex data"):
        st.denoise_lowrank(y, sigma=1.0)


def test_pure_noise_is_removed():
    rng = np.random.default_rng(9)
    found = st.LowRankDenoiser(sigma=1.0).run(rng.normal(size=(40, 40, 30)))
    assert np.mean(found.estimate**2) < 0.02
    assert found.rank.mean() < 0.3


def test_progress_is_shown(capsys):
    rng = np.random.default_rng(10)
    st.denoise_lowrank(rng.normal(size=(12, 12, 10)), sigma=1.0, progress=True)
    assert "denoise: 100%" in capsys.readouterr().err


def test_without_threadpoolctl_nothing_breaks(monkeypatch):
    monkeypatch.setitem(sys.modules, "threadpoolctl", None)
    with one_blas_thread():
        assert np.linalg.eigvalsh(np.eye(3)) == pytest.approx([1, 1, 1])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"y": np.ones((4, 5))}, "y must have 3 axes"),
        ({"y": np.ones((0, 5, 6))}, "y is empty"),
        ({"y": np.full((4, 5, 6), "a")}, "y must hold numbers"),
        ({"y": np.ones((20, 20, 4))}, "has 4 volumes along series_axis=-1.*channel_axis"),
        ({"series_axis": 3}, "series_axis must be an axis of y, which has 3, got 3"),
        ({"series_axis": 1.0}, "series_axis must be an axis"),
        ({"sigma": -1.0}, "sigma must be positive"),
        ({"sigma": np.ones((3, 3))}, r"map with the shape of one volume, \(12, 10\), got shape \(3, 3\)"),
        ({"sigma": np.zeros((12, 10))}, "sigma must be positive and finite everywhere"),
        ({"patch": 11}, "patch must fit into the data"),
        ({"patch": 1}, "at least 2 entries"),
        ({"patch": (3, 3, 3)}, "patch must be a whole number of at least 1, or 2 of them"),
        ({"patch": 2.5}, "patch must be a whole number"),
        ({"patch": 3, "step": 4}, "step must not exceed the patch"),
        ({"step": 0}, "step must be a whole number"),
        ({"mask": np.zeros((12, 10))}, "mask must be boolean"),
        ({"mask": np.zeros((3, 3), dtype=bool)}, "mask must have the shape of one volume"),
    ],
)
def test_bad_input_is_named(arguments, message):
    y = np.random.default_rng(0).normal(size=(12, 10, 8))
    with pytest.raises((ValueError, TypeError), match=message):
        st.denoise_lowrank(**{"y": y, "sigma": 1.0, **arguments})


def test_thin_volumes_are_allowed():
    rng = np.random.default_rng(11)
    for shape in ((20, 20, 1, 10), (1, 30, 2, 10), (2, 1, 10)):
        y = rng.normal(size=shape)
        assert st.denoise_lowrank(y, sigma=1.0).shape == shape
    with pytest.raises(ValueError, match="more than one entry per volume"):
        st.denoise_lowrank(rng.normal(size=(1, 1, 10)), sigma=1.0)


def test_magnitudes_are_warned_about():
    """Gaussian noise would have made negative entries. Far from 0 it would not, and magnitudes are nearly Gaussian."""
    rng = np.random.default_rng(15)
    noise = rng.normal(size=(30, 30, 12)) + 1j * rng.normal(size=(30, 30, 12))
    with pytest.warns(st.AssumptionWarning, match=r"no negative entries.*about \d+: .*complex data"):
        st.denoise_lowrank(np.abs(noise))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        st.denoise_lowrank(np.abs(noise + 8.0))
        st.denoise_lowrank(noise.real + 1.0)
        st.denoise_lowrank(noise)


def test_a_noise_map_can_be_given_back():
    """It is 0 where entries are masked; there it does not matter."""
    rng = np.random.default_rng(16)
    y = rng.normal(size=(20, 20, 12))
    mask = np.zeros((20, 20), bool)
    mask[:5] = True
    first = st.LowRankDenoiser(mask=mask).run(y)
    again = st.LowRankDenoiser(mask=mask, sigma=first.sigma).run(y)
    assert (first.sigma[mask] == 0).all()
    assert again.estimate == pytest.approx(first.estimate, rel=1e-9, abs=1e-12)
    with pytest.raises(ValueError, match=r"sigma must be positive.*got 0.0 .*mask=~\(sigma > 0\)"):
        st.denoise_lowrank(y, sigma=first.sigma)


def test_numbers_whose_squares_overflow_are_refused():
    y = np.random.default_rng(0).normal(size=(12, 12, 12))
    with pytest.raises(ValueError, match=r"y holds magnitudes up to .*e\+200, whose squares overflow. Divide"):
        st.denoise_lowrank(y * 1e200)
    with pytest.raises(ValueError, match=r"matrix holds magnitudes up to .*e\+200, whose squares overflow. Divide"):
        st.select_rank(y[0] * 1e200)
    with pytest.raises(ValueError, match=r"X holds magnitudes up to .*e\+200, whose squares overflow. Divide"):
        ScorePCA().fit(y[0] * 1e200)


def test_numbers_whose_squares_vanish_are_refused():
    """They would pass for a series without noise."""
    y = np.random.default_rng(0).normal(size=(8, 8, 10))
    with pytest.raises(ValueError, match="whose squares vanish"):
        st.denoise_lowrank(1e-200 * y)
    with pytest.raises(ValueError, match=r"matrix holds magnitudes up to .*, whose squares vanish"):
        st.select_rank(1e-200 * y[0])


def test_integers_of_64_bits_do_not_wrap_around():
    """The next double above the largest integer is none."""
    rng = np.random.default_rng(0)
    y = np.iinfo(np.int64).max - (1e15 * np.abs(rng.normal(size=(8, 8, 12)))).astype(np.int64)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        found = st.denoise_lowrank(y, sigma=1e15)
    assert found.dtype == np.int64
    assert (found > 9e18).all()


def test_rows_of_different_lengths_and_axes_that_are_none_are_named():
    with pytest.raises(ValueError, match=r"matrix is no array: .* Make its rows equally long"):
        st.select_rank([[1, 2], [3]])
    with pytest.raises(ValueError, match=r"y is no array: .* Make its rows equally long"):
        st.denoise_lowrank([[1, 2], [3]])
    with pytest.raises(ValueError, match="series_axis must be an axis of y, which has 3, got True"):
        st.denoise_lowrank(np.zeros((9, 9, 9)), series_axis=True)
