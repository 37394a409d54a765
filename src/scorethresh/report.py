"""The report, under the name that it had first: see `scorethresh.viz.report`."""

from .viz.report import write_report

__all__ = ["write_report"]
