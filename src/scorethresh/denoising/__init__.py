"""The denoiser, stage by stage."""
