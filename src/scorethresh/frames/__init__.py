"""Redundant transforms: wavelets, and the DCT of windows."""
