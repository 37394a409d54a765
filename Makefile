# Every target starts from a bare checkout: it makes .venv and installs what it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test check bench papers docs clean

# One stamp file per set of extras; a change of pyproject.toml installs anew.
$(VENV)/.%: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[$*]"
	touch $@

demo: $(VENV)/.plot
	$(BIN)/python examples/demo.py

test: $(VENV)/.test
	$(BIN)/python -m pytest -n auto

check: $(VENV)/.check
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.bench
	$(BIN)/python benchmarks/bench_curve.py
	$(BIN)/python benchmarks/bench_denoise.py speed border

# The figures of the paper and of docs/theory.md, into out/score2013.
papers: $(VENV)/.papers
	$(BIN)/python -m papers.score2013.fig_risk
	$(BIN)/python -m papers.score2013.theorem
	$(BIN)/python -m papers.score2013.bandwidth

# The pages, into docs/_build/html; examples run on the way, and a warning is an error.
docs: $(VENV)/.docs
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html

clean:
	rm -rf $(VENV) out build dist docs/_build docs/gallery docs/generated docs/sg_execution_times.rst
