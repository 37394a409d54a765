import numpy as np
import pytest
import pywt

import scorethresh as st

TRANSFORMS = {
    "wavedec": (lambda y: pywt.wavedec(y, "db2", level=3), lambda c: pywt.waverec(c, "db2"), 1),
    "wavedec2": (lambda y: pywt.wavedec2(y, "db2", level=3), lambda c: pywt.waverec2(c, "db2"), 2),
    "wavedecn": (lambda y: pywt.wavedecn(y, "db2", level=2), lambda c: pywt.waverecn(c, "db2"), 3),
    "swt": (lambda y: pywt.swt(y, "db2", level=3), lambda c: pywt.iswt(c, "db2"), 1),
    "swt trimmed": (lambda y: pywt.swt(y, "db2", level=3, trim_approx=True), lambda c: pywt.iswt(c, "db2"), 1),
    "swt2": (lambda y: pywt.swt2(y, "db2", level=2), lambda c: pywt.iswt2(c, "db2"), 2),
    "swt2 trimmed": (lambda y: pywt.swt2(y, "db2", level=2, trim_approx=True), lambda c: pywt.iswt2(c, "db2"), 2),
    "swtn": (lambda y: pywt.swtn(y, "db2", level=2), lambda c: pywt.iswtn(c, "db2"), 2),
}


def leaves(coeffs):
    if isinstance(coeffs, dict):
        coeffs = list(coeffs.values())
    return [coeffs] if not isinstance(coeffs, list | tuple) else [leaf for c in coeffs for leaf in leaves(c)]


def shape_of(coeffs):
    if isinstance(coeffs, dict):
        return {key: shape_of(c) for key, c in coeffs.items()}
    return type(coeffs)(map(shape_of, coeffs)) if isinstance(coeffs, list | tuple) else (coeffs.shape, coeffs.dtype)


@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_structure_comes_back_and_the_error_falls(rng, name, dtype):
    analyse, synthesise, ndim = TRANSFORMS[name]
    side = {1: 512, 2: 64, 3: 16}[ndim]
    clean = np.zeros((side,) * ndim)
    clean[(slice(side // 4, side // 2),) * ndim] = 20
    noisy = (clean + rng.normal(size=clean.shape)).astype(dtype)
    coeffs = analyse(noisy)
    before = [leaf.copy() for leaf in leaves(coeffs)]
    found = st.threshold_coeffs(coeffs, sigma=1.0)
    assert shape_of(found.coeffs) == shape_of(coeffs)
    for leaf, copy in zip(leaves(coeffs), before, strict=True):
        np.testing.assert_array_equal(leaf, copy)
    error = np.mean((synthesise(found.coeffs) - clean) ** 2)
    assert error < 0.5 * np.mean((noisy - clean) ** 2)


def test_every_band_gets_the_threshold_of_least_risk(rng):
    coeffs = pywt.wavedec2(rng.normal(size=(64, 64)) + 9 * np.eye(64), "haar", level=2)
    found = st.threshold_coeffs(coeffs, sigma=1.0, rule="soft", method="sure")
    assert found.coeffs[0] is coeffs[0]
    for level, selections, treated in zip(coeffs[1:], found.selections, found.coeffs[1:], strict=True):
        for band, selection, estimate in zip(level, selections, treated, strict=True):
            expected = st.select_threshold(band, sigma=1.0, rule="soft", method="sure")
            assert selection.threshold == expected.threshold
            np.testing.assert_array_equal(estimate, st.Soft()(band, expected.threshold))


@pytest.mark.parametrize(("name", "ndim"), [("swt", 1), ("swt2", 2)])
def test_normalised_stationary_transforms_have_less_noise_at_coarse_levels(rng, name, ndim):
    y = rng.normal(size=(256,) * ndim)
    coeffs = getattr(pywt, name)(y, "haar", level=3, norm=True)
    for sigma in (1.0, None):
        found = st.threshold_coeffs(coeffs, sigma=sigma, norm=True)
        assert found.sigma == pytest.approx(1, rel=0.15)
        levels = [leaves(s)[0].curve.sigma for s in found.selections]
        np.testing.assert_allclose(levels, found.sigma * 2.0 ** (-ndim / 2 * np.array([3, 2, 1])))


def test_the_noise_level_is_that_of_the_finest_diagonal_detail(rng):
    coeffs = pywt.wavedec2(rng.normal(scale=3, size=(64, 64)), "haar", level=2)
    assert st.threshold_coeffs(coeffs).sigma == st.estimate_sigma(coeffs[-1][-1].ravel())
    assert st.threshold_coeffs(pywt.wavedecn(rng.normal(scale=3, size=(64, 64)), "haar")).sigma == pytest.approx(
        3, rel=0.1
    )


@pytest.mark.parametrize(
    ("coeffs", "message"),
    [
        (np.ones(3), "coeffs must be a list as pywt.wavedec returns it"),
        ([], "list of length 0"),
        ([np.ones(3)], "an approximation and no details"),
        ([np.ones(3), "x"], "level 0 of coeffs must be an array"),
    ],
)
def test_errors(coeffs, message):
    with pytest.raises((TypeError, ValueError), match=message):
        st.threshold_coeffs(coeffs, sigma=1.0)


@pytest.mark.parametrize(
    "transform",
    [
        lambda w: pywt.swt(w, "haar", 2, norm=True, trim_approx=True),
        lambda w: pywt.swt(w, "haar", 2, norm=True, axis=0),
        lambda w: pywt.swt2(np.stack([w, -w]), "haar", 2, norm=True, axes=(1, 2)),
        lambda w: pywt.swt2(np.stack([w, -w]), "haar", 2, norm=True, axes=(1, 2), trim_approx=True),
        lambda w: pywt.swtn(w, "haar", 2, norm=True, axes=(1,)),
        lambda w: pywt.swtn(w, "haar", 2, norm=True),
    ],
)
def test_the_noise_level_goes_by_the_axes_that_were_transformed(rng, transform):
    found = st.threshold_coeffs(transform(rng.normal(size=(128, 128))), norm=True)
    assert found.sigma == pytest.approx(1, rel=0.05)


def test_a_result_prints_in_one_line(rng):
    coeffs = pywt.wavedec(rng.normal(size=64), "haar", level=2)
    assert repr(st.threshold_coeffs(coeffs, sigma=1.0)) == "<Thresholded: 3 levels of coefficients, sigma 1>"


def test_a_curve_as_a_table(rng):
    pytest.importorskip("pandas")
    curve = st.risk_curve(rng.normal(size=64), [1.0, 2.0], sigma=1.0)
    frame = curve.to_frame()
    assert list(frame) == ["threshold", "risk", "dof", "stderr"]
    np.testing.assert_array_equal(frame["risk"], curve.risk)
