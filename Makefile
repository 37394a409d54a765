# Both commands start from a bare checkout: they make .venv and install what they need.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test check bench clean

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

clean:
	rm -rf $(VENV) out build dist
