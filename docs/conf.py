"""Sphinx configuration, used by `make docs`. The build fetches nothing; MathJax is loaded when a page is viewed."""

import os
from pathlib import Path

# The examples need no more threads of BLAS.
os.environ.setdefault("OMP_NUM_THREADS", "2")

import scorethresh

project = "scorethresh"
author = "The scorethresh developers"
project_copyright = author
version = release = scorethresh.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "_templates", "gallery/*.ipynb", "gallery/*.py", "**sg_execution_times.rst"]
default_role = "py:obj"
myst_enable_extensions = ["amsmath", "colon_fence", "dollarmath"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_class_members_toctree = False
numpydoc_show_class_members = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_signature": False,
    "capture_repr": (),
    "min_reported_time": 60,
}

html_theme = "pydata_sphinx_theme"
html_title = "scorethresh"
html_show_sourcelink = False
html_static_path = ["_static"]
html_css_files = ["extra.css"]
# Only the API has pages below it, so only the API needs a sidebar.
html_sidebars = {page.stem: [] for page in Path(__file__).parent.glob("*.md") if page.stem != "api"} | {"fields/*": []}
html_theme_options = {
    "navigation_with_keys": False,
    "show_prev_next": False,
    "header_links_before_dropdown": 6,
    "footer_start": ["copyright"],
    "footer_end": [],
}
