"""The former name of `scorethresh.viz.report`, kept for old imports."""

from .viz.report import write_report

__all__ = ["write_report"]
