# Machine code and compiled vocabularies of these targets stay inside the checkout.
export JITTOK_CACHE_DIR ?= $(CURDIR)/.venv/cache
# Tests run as they do where nothing is set: with buffered streams, and with the bytecode of modules kept.
unexport PYTHONUNBUFFERED PYTHONDONTWRITEBYTECODE

PY := .venv/bin/python
COMMA := ,
PIP = @echo "installing jittok for $(@F) into .venv; a minute or two ..."; begin=$$(date +%s); \
	$(PY) -m pip install --quiet --disable-pip-version-check -e $(1) && touch $@ && echo "installed in $$(($$(date +%s) - begin)) s"
# Tests run in a drawn order, the same each time: make test ORDER=7 is another one.
ORDER ?= 1
PYTEST := $(PY) -m pytest -q --randomly-seed=$(ORDER)
.PHONY: docs docs-serve ship wheel try-wheel ship-test demo test test-all test-checked test-interpreted test-rooms test-works test-laws test-surfaces test-settings test-others test-lessons test-documents test-notebooks test-fast alone mutants lint bench fuzz differential examples upstream clean
.venv/bin/python:
	python3 -m venv .venv
.venv/core: pyproject.toml .venv/bin/python
	$(call PIP,'.[cli$(COMMA)corpus]')
.venv/test: pyproject.toml .venv/bin/python
	$(call PIP,'.[test]')
.venv/dev: pyproject.toml .venv/bin/python
	$(call PIP,'.[dev]')
.venv/docs: pyproject.toml .venv/bin/python
	$(call PIP,'.[docs]')
.venv/bench: pyproject.toml .venv/bin/python
	$(call PIP,'.[bench]')

demo: .venv/core  ## a real text, tokenized; a corpus compiled, verified and read back
	$(PY) examples/demo.py

PARTS := $(PY) tests/run/parts.py --order $(ORDER)
TIMED = @begin=$$(date +%s); $(1); code=$$?; echo "$@: $$(($$(date +%s) - begin)) s"; exit $$code

test: .venv/test  ## five minutes: every package, kernel and command, and a sample of the parameters of each test
	@$(PARTS) test

test-all: .venv/test  ## everything, also with every index checked, without the compiler, lessons and documents: 25 minutes
	@$(PARTS) test-all

test-checked test-interpreted test-rooms test-works test-laws test-surfaces test-settings test-others test-lessons test-documents: .venv/test
	@$(PARTS) $(@:test-%=%)

test-notebooks: .venv/test  ## the notebooks alone, as a kernel runs them
	$(PYTEST) --nbmake notebooks

# Most rooms between a text and its ids (models, normalize and align take longer), and how the package hangs together:
# 105 s on one busy core.
QUICK := tests/kernels/memory tests/kernels/structures tests/kernels/merging tests/kernels/special tests/decode tests/kernels/pretoken_cache tests/kernels/pretokenize tests/common/rows \
	tests/kernels/inputs tests/encode tests/law/test_layout.py tests/test_tokenizer.py tests/test_public.py tests/test_packages.py
test-fast: .venv/test  ## two minutes, for one at work: no processes, no recorded sets, few examples: make test-fast FAST=tests/kernels/models/test_bpe.py
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

docs: .venv/docs  ## the documentation site, into build/site/html
	$(PY) tools/site_pages.py && .venv/bin/zensical build --strict && $(PY) tools/site_pages.py --check
docs-serve: .venv/docs  ## the same on http://127.0.0.1:8000, made again when a page is staged
	$(PY) tools/site_pages.py && .venv/bin/zensical serve

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
	@$(PARTS) examples

REPORT ?= upstream-report.md
upstream: .venv/test  ## is there a newer llama.cpp, and what does it do that jittok does not know? make upstream REPORT=x.md
	$(PY) upstream/watch.py --report $(REPORT) $(ARGS)

LEVELS ?= linux-x86_64-v2 linux-x86_64-v3 linux-x86_64-v4
SYSTEM ?= linux-x86_64
.venv/ship: .venv/core
	$(PY) -m pip install --quiet --disable-pip-version-check build hatchling lief ziglang && touch $@
ship: .venv/ship  ## machine code of all kernels into this checkout, as a wheel has it; an edit makes it void
	$(PY) ship/emit.py build/bitcode && $(PY) ship/libraries.py build/bitcode jittok/kernels/jit/libs $(LEVELS)

wheel: .venv/ship  ## a wheel with machine code into dist: make wheel SYSTEM=linux-aarch64; ship/levels.py has the systems
	JITTOK_SHIP_FOR=$(SYSTEM) $(PY) -m build --wheel --no-isolation
	$(PY) ship/check.py dist/jittok-*.whl

# As a stranger builds it: nothing but the tools that `python -m build` fetches into an environment of its own.
.venv/build: .venv/bin/python
	$(PY) -m pip install --quiet --disable-pip-version-check build && touch $@
try-wheel: .venv/build  ## sdist and, from that, a wheel with machine code, built in isolation and tried without a compiler
	rm -rf build/try && mkdir -p build
	@begin=$$(date +%s); echo "building sdist and wheel, some minutes ..."; $(PY) -m build --outdir build/try/dist . >build/try.log 2>&1 \
		|| { cat build/try.log; exit 1; }; echo "built in $$(($$(date +%s) - begin)) s"
	$(PY) ship/try_wheel.py build/try/dist/jittok-*.whl

BARE := build/bare/bin/python
INSTALL := install --quiet --disable-pip-version-check
ship-test: wheel  ## that wheel in an environment without Numba: recorded answers, texts, documents; then README in a whole one
	rm -rf build/bare build/whole && python3 -m venv build/bare && python3 -m venv build/whole
	$(BARE) -m pip $(INSTALL) numpy regex gguf orjson pytest hypothesis pytest-randomly
	$(BARE) -m pip $(INSTALL) --no-deps --no-index --find-links dist jittok
	cd tests && env -u PYTHONPATH JITTOK_CACHE_DIR="$(CURDIR)/build/bare/cache" "$(CURDIR)/$(BARE)" -m pytest -q -c ../pyproject.toml \
		--rootdir .. -p no:cacheprovider -o pythonpath="tests/data tests/fuzz tests/kernels/jit tests/run" \
		test_golden.py files/test_recorded.py test_tokenizer.py test_machines.py jit/test_every_kernel.py jit/test_shipped.py
	build/whole/bin/python -m pip $(INSTALL) "$$(ls dist/jittok-*-$$($(PY) ship/levels.py).whl)[cli,corpus,polars]" hypothesis lief pytest pytest-randomly
	cd tests && env -u PYTHONPATH JITTOK_CACHE_DIR="$(CURDIR)/build/whole/cache" "$(CURDIR)/build/whole/bin/python" -m pytest -q \
		-c ../pyproject.toml --rootdir .. -p no:cacheprovider test_docs.py jit/test_check.py -k "README or test_check"

clean:
	rm -rf .venv .hypothesis .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .benchmarks
