"""Experts: estimators with a divergence, of which the denoiser blends several."""
