"""Compiled loops, reached only through checked wrappers."""
