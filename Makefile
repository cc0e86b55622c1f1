# Machine code and compiled vocabularies of these targets stay inside the checkout.
export JITTOK_CACHE_DIR ?= $(CURDIR)/.venv/cache

PY := .venv/bin/python
PIP := $(PY) -m pip install --quiet --disable-pip-version-check -e
PYTEST := $(PY) -m pytest -q
KERNELS := -m 'not process and not slow' tests/raw tests/structures tests/normalize tests/pretokenize tests/models tests/align tests/files/test_kernels.py tests/test_special.py tests/test_decode.py

.PHONY: demo test lint bench fuzz differential examples clean
.venv/bin/python:
	python3 -m venv .venv
.venv/core: pyproject.toml .venv/bin/python
	$(PIP) '.[cli,corpus]' && touch $@
.venv/test: pyproject.toml .venv/bin/python
	$(PIP) '.[test]' && touch $@
.venv/dev: pyproject.toml .venv/bin/python
	$(PIP) '.[dev]' && touch $@
.venv/bench: pyproject.toml .venv/bin/python
	$(PIP) '.[bench]' && touch $@

demo: .venv/core  ## a real text, tokenized; a corpus compiled, verified and read back
	$(PY) examples/demo.py

# Checked first: what is a plain failure there can be a crash without a message in fast code. The run without the
# compiler goes beside it, and the notebooks beside the compiled run: each is one process, and most machines have two cores.
test: .venv/test  ## every index checked; no compiler at all; compiled, everything; the notebooks
	@NUMBA_DISABLE_JIT=1 HYPOTHESIS_PROFILE=slow $(PYTEST) $(KERNELS) >.venv/interpreted.log 2>&1 & other=$$!; \
	echo "with every index checked:"; NUMBA_BOUNDSCHECK=1 $(PYTEST) $(KERNELS); first=$$?; \
	echo "without the compiler:"; wait $$other; second=$$?; cat .venv/interpreted.log; exit $$((first + second))
	@$(PYTEST) --nbmake notebooks >.venv/notebooks.log 2>&1 & other=$$!; \
	echo "compiled, everything:"; $(PYTEST); first=$$?; \
	echo "notebooks:"; wait $$other; second=$$?; cat .venv/notebooks.log; exit $$((first + second))

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
	NUMBA_BOUNDSCHECK=1 $(PY) tests/fuzz/run.py --minutes $$(($(MINUTES) / 4 + 1)) --seed $$(($(SEED) + 1))
	$(PYTEST) -m slow tests/corpus tests/trace  # kills; with Ray where it is installed; traces of the large sets

TEXTS ?= 1000000
differential: .venv/test  ## every vocabulary and pre type, a cache that is kept against none: make differential TEXTS=10000000
	$(PY) tests/fuzz/differential.py --texts $(TEXTS) --seed $(SEED)

examples: .venv/test  ## 50,000 examples of every property of the kernels, every index checked: hours
	HYPOTHESIS_PROFILE=fuzz NUMBA_BOUNDSCHECK=1 $(PYTEST) $(KERNELS)

clean:
	rm -rf .venv .hypothesis .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .benchmarks
