# Machine code and compiled vocabularies of these targets stay inside the checkout.
export JITTOK_CACHE_DIR ?= $(CURDIR)/.venv/cache

PY := .venv/bin/python
PIP := $(PY) -m pip install --quiet --disable-pip-version-check -e
KERNEL_TESTS := $(wildcard tests/structures tests/normalize tests/pretokenize tests/models tests/test_special.py tests/test_decode.py tests/test_align.py)

.PHONY: demo test lint bench fuzz clean
.venv/bin/python:
	python3 -m venv .venv
.venv/core: pyproject.toml .venv/bin/python
	$(PIP) '.[cli]' && touch $@
.venv/test: pyproject.toml .venv/bin/python
	$(PIP) '.[test]' && touch $@
.venv/dev: pyproject.toml .venv/bin/python
	$(PIP) '.[dev]' && touch $@
.venv/bench: pyproject.toml .venv/bin/python
	$(PIP) '.[bench]' && touch $@

demo: .venv/core  ## a real text, tokenized: the core and the command line's extra are all it needs
	$(PY) examples/demo.py

# Checked first: what is a plain failure there can be a crash without a message in fast code.
test: .venv/test  ## three runs: every index checked; no compiler at all; compiled, everything
	NUMBA_BOUNDSCHECK=1 $(PY) -m pytest -q -m 'not process' $(KERNEL_TESTS)
	NUMBA_DISABLE_JIT=1 HYPOTHESIS_PROFILE=slow $(PY) -m pytest -q -m 'not process' $(KERNEL_TESTS)
	$(PY) -m pytest -q
	$(PY) -m pytest -q --nbmake notebooks

lint: .venv/dev
	.venv/bin/ruff format --check . && .venv/bin/ruff check .
	.venv/bin/mypy
	.venv/bin/lint-imports

bench: .venv/bench  ## compare with the last run: make bench ARGS=--benchmark-compare
	$(PY) -m pytest bench --benchmark-only --benchmark-sort=name --benchmark-columns=min,median,iqr,rounds $(ARGS)

MINUTES ?= 10
SEED ?= 1
fuzz: .venv/test  ## kernel against reference for as long as you like: make fuzz MINUTES=60 SEED=7
	$(PY) tests/fuzz/run.py --minutes $(MINUTES) --seed $(SEED)
	HYPOTHESIS_PROFILE=fuzz NUMBA_BOUNDSCHECK=1 $(PY) -m pytest -q -m 'not process' $(KERNEL_TESTS)
	$(PY) -m pytest -q -m slow tests/corpus  # kills; with Ray where it is installed

clean:
	rm -rf .venv .hypothesis .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .benchmarks
