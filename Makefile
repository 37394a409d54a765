# Every target works in a bare checkout: it makes .venv and installs what it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: help demo test quick sanitize check bench papers docs clean

help:
	@echo "make demo     denoise a picture and an electrocardiogram; writes out/demo.png"
	@echo "make test     run all tests"
	@echo "make quick    run the tests that are not marked slow"
	@echo "make sanitize run the tests of the compiled loops with checks of their memory accesses"
	@echo "make check    check style and types"
	@echo "make docs     build the pages into docs/_build/html"
	@echo "make papers   draw the paper's figures into out/score2013"
	@echo "make bench    print the tables of speed"
	@echo "make clean    remove everything that make has made"

# One stamp file per extra. When pyproject.toml or a loop in C changes, the extra is installed again.
$(VENV)/.%: pyproject.toml hatch_build.py $(wildcard src/scorethresh/_kernels/*.[ch])
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[$*]"
	touch $@

demo: $(VENV)/.plot
	$(BIN)/python examples/demo.py

test: $(VENV)/.test
	$(BIN)/python -m pytest -n auto

# About 80 s on two cores: no slow tests, no pages.
quick: $(VENV)/.test
	$(BIN)/python -m pytest -n auto -m "not slow" tests src

# The loops are compiled with AddressSanitizer and UndefinedBehaviorSanitizer. Python itself is not: leaks are its own.
SANITIZED := build/sanitize
sanitize: $(VENV)/.test
	$(BIN)/python hatch_build.py --sanitize $(SANITIZED)
	SCORETHRESH_KERNELS=$(CURDIR)/$(SANITIZED) ASAN_OPTIONS=detect_leaks=0 \
	LD_PRELOAD="$$(cc -print-file-name=libasan.so) $$(cc -print-file-name=libubsan.so)" \
	$(BIN)/python -m pytest -n auto -m "not slow" tests/test_kernels.py tests/test_frames.py tests/test_magnitudes.py \
	tests/test_score.py tests/test_denoise.py tests/test_patches.py tests/test_rows.py

check: $(VENV)/.check
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.bench
	$(BIN)/python benchmarks/bench_curve.py
	$(BIN)/python benchmarks/bench_denoise.py speed border

# Draw the figures of the paper and of docs/theory.md into out/score2013.
papers: $(VENV)/.papers
	$(BIN)/python -m papers.score2013.fig_risk
	$(BIN)/python -m papers.score2013.theorem
	$(BIN)/python -m papers.score2013.bandwidth

# Build the pages into docs/_build/html. The examples run, and warnings are errors.
docs: $(VENV)/.docs
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html

clean:
	rm -rf $(VENV) out build dist docs/_build docs/gallery docs/generated docs/sg_execution_times.rst
