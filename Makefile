# Machine code and compiled vocabularies of these targets stay inside the checkout.
export JITTOK_CACHE_DIR ?= $(CURDIR)/.venv/cache
# Tests run as they do where nothing is set: with buffered streams, and with the bytecode of modules kept.
unexport PYTHONUNBUFFERED PYTHONDONTWRITEBYTECODE

PY := .venv/bin/python
PIP := $(PY) -m pip install --quiet --disable-pip-version-check -e
# Tests run in a drawn order, the same each time: make test ORDER=7 is another one.
ORDER ?= 1
PYTEST := $(PY) -m pytest -q --randomly-seed=$(ORDER)
# Tests of kernels. PLAIN: those that also run without the compiler. KERNELS: those that run with every index checked.
PLAIN := -m 'not process and not slow' tests/raw tests/structures tests/normalize tests/pretokenize tests/models tests/align tests/special tests/decode tests/merging tests/piece_cache
KERNELS := $(PLAIN) tests/law/test_isolation.py \
	tests/files/test_kernels.py tests/train/test_bpe.py tests/train/test_counting.py tests/train/test_other_models.py tests/train/test_unigram.py
# Compiled, all tests run in five parts: these four, and the rest.
ROOMS := tests/models tests/align tests/files tests/normalize
WORKS := tests/corpus tests/train
LAWS := tests/law
SURFACES := tests/cli tests/convert tests/jit tests/plot tests/trace tests/test_start.py
# What users read: each lesson in a process of its own, which must show what is kept in the file, and each block of the documents.
DOCUMENTS := tests/test_docs.py tests/test_documents.py
READ := tests/notebooks $(DOCUMENTS)

.PHONY: ship wheel ship-test demo test test-checked test-interpreted test-compiled test-rooms test-works test-laws test-surfaces test-others test-read test-lessons test-documents test-notebooks test-fast alone mutants lint bench fuzz differential examples upstream clean
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

# Parts of the tests, in an order that leaves no long one for the end. `test` runs three at a time: most machines have two cores, and some tests (of
# corpora above all) wait for other processes. What a part says is printed when it ends.
PARTS := test-works test-checked test-rooms test-laws test-others test-surfaces test-interpreted test-lessons test-documents
TIMED = @begin=$$(date +%s); $(1); code=$$?; echo "$@: $$(($$(date +%s) - begin)) s"; exit $$code

test: .venv/test  ## every index checked; no compiler at all; compiled, everything; the notebooks
	@echo "in the order of --randomly-seed=$(ORDER), three parts at a time: $(PARTS)"
	@$(MAKE) --no-print-directory -k -j3 $(if $(filter output-sync,$(.FEATURES)),-Otarget) $(PARTS)

# Optimized little: three quarters of this half are LLVM and Numba, which have several times as much to do with checks.
test-checked: .venv/test
	@echo "with every index checked:"
	$(call TIMED,NUMBA_BOUNDSCHECK=1 NUMBA_OPT=1 HYPOTHESIS_PROFILE=checked $(PYTEST) $(KERNELS))

test-interpreted: .venv/test
	@echo "without the compiler:"
	$(call TIMED,NUMBA_DISABLE_JIT=1 HYPOTHESIS_PROFILE=slow $(PYTEST) $(PLAIN))

test-compiled: test-rooms test-works test-laws test-surfaces test-others test-read

test-rooms: .venv/test
	@echo "compiled, from a text to its ids and back:"
	$(call TIMED,$(PYTEST) $(ROOMS))

test-works: .venv/test
	@echo "compiled, corpora, training:"
	$(call TIMED,$(PYTEST) $(WORKS))

test-laws: .venv/test
	@echo "compiled, the laws:"
	$(call TIMED,$(PYTEST) $(LAWS))

test-surfaces: .venv/test
	@echo "compiled, commands, starts, machine code, what is shown:"
	$(call TIMED,$(PYTEST) $(SURFACES))

test-others: .venv/test
	@echo "compiled, all other tests:"
	$(call TIMED,$(PYTEST) $(addprefix --ignore=,$(ROOMS) $(WORKS) $(LAWS) $(SURFACES) $(READ)))

test-read: test-lessons test-documents

test-lessons: .venv/test
	@echo "lessons:"
	$(call TIMED,$(PYTEST) tests/notebooks)

test-documents: .venv/test
	@echo "documents:"
	$(call TIMED,$(PYTEST) $(DOCUMENTS))

test-notebooks: .venv/test  ## the notebooks alone, as a kernel runs them
	$(PYTEST) --nbmake notebooks

# Most rooms between a text and its ids (models, normalize and align take longer), and how the package hangs together:
# 105 s on one busy core.
QUICK := tests/raw tests/structures tests/merging tests/special tests/decode tests/piece_cache tests/pretokenize tests/rows \
	tests/inputs tests/encode tests/law/test_layout.py tests/test_tokenizer.py tests/test_public.py tests/test_packages.py
test-fast: .venv/test  ## two minutes, for one at work: no processes, no recorded sets, few examples: make test-fast FAST=tests/models/test_bpe.py
	$(call TIMED,HYPOTHESIS_PROFILE=slow $(PYTEST) -m 'not process and not slow and not recorded_elsewhere' $(or $(FAST),$(QUICK)))

ONLY ?=
alone: .venv/test  ## each test file in a process of its own, in another order each time: make alone ONLY=tests/vocab
	$(PY) tests/alone.py $(ONLY)

mutants: .venv/test  ## small changes to a copy of the package, which tests must notice: make mutants ONLY=partition
	$(PY) tests/mutants/run.py $(ONLY)

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
	$(PYTEST) -m slow tests/corpus tests/law tests/trace tests/files tests/test_worst.py tests/test_golden.py  # kills; with Ray where it is installed; large sets; worst inputs

TEXTS ?= 1000000
differential: .venv/test  ## every vocabulary and pre type, a cache that is kept against none: make differential TEXTS=10000000
	$(PY) tests/fuzz/differential.py --texts $(TEXTS) --seed $(SEED)

examples: .venv/test  ## 50,000 examples of every property of the kernels, every index checked: hours
	HYPOTHESIS_PROFILE=fuzz NUMBA_BOUNDSCHECK=1 $(PYTEST) $(KERNELS)

REPORT ?= upstream-report.md
upstream: .venv/test  ## is there a newer llama.cpp, and what does it do that jittok does not know? make upstream REPORT=x.md
	$(PY) upstream/watch.py --report $(REPORT) $(ARGS)

LEVELS ?= linux-x86_64-v2 linux-x86_64-v3 linux-x86_64-v4
SYSTEM ?= linux-x86_64
.venv/ship: .venv/core
	$(PY) -m pip install --quiet --disable-pip-version-check build hatchling lief ziglang && touch $@
ship: .venv/ship  ## machine code of all kernels into this checkout, as a wheel has it; an edit makes it void
	$(PY) ship/emit.py build/bitcode && $(PY) ship/libraries.py build/bitcode jittok/_jit/libs $(LEVELS)

wheel: .venv/ship  ## a wheel with machine code into dist: make wheel SYSTEM=linux-aarch64; ship/levels.py has the systems
	JITTOK_SHIP_FOR=$(SYSTEM) $(PY) -m build --wheel --no-isolation
	$(PY) ship/check.py dist/jittok-*.whl

BARE := build/bare/bin/python
INSTALL := install --quiet --disable-pip-version-check
ship-test: wheel  ## that wheel in an environment without Numba: recorded answers, texts, documents; then README in a whole one
	rm -rf build/bare build/whole && python3 -m venv build/bare && python3 -m venv build/whole
	$(BARE) -m pip $(INSTALL) numpy regex gguf orjson pytest hypothesis pytest-randomly
	$(BARE) -m pip $(INSTALL) --no-deps --no-index --find-links dist jittok
	cd tests && env -u PYTHONPATH JITTOK_CACHE_DIR="$(CURDIR)/build/bare/cache" "$(CURDIR)/$(BARE)" -m pytest -q -c ../pyproject.toml \
		--rootdir .. -p no:cacheprovider -o pythonpath="tests/data tests/fuzz tests/jit" \
		test_golden.py files/test_recorded.py test_tokenizer.py test_machines.py jit/test_every_kernel.py jit/test_shipped.py
	build/whole/bin/python -m pip $(INSTALL) "$$(ls dist/jittok-*-$$($(PY) ship/levels.py).whl)[cli,corpus,polars]" hypothesis lief pytest pytest-randomly
	cd tests && env -u PYTHONPATH JITTOK_CACHE_DIR="$(CURDIR)/build/whole/cache" "$(CURDIR)/build/whole/bin/python" -m pytest -q \
		-c ../pyproject.toml --rootdir .. -p no:cacheprovider test_docs.py jit/test_check.py -k "README or test_check"

clean:
	rm -rf .venv .hypothesis .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .benchmarks
