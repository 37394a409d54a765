"""Plots, and the report."""
