# run, check, test, prove and bench are all there is; each one makes .venv first: run installs what
# running needs, the others what tests need too.

PYTHON ?= $(shell for name in python3.11 python3.12 python3.13 python3 python; do \
	if "$$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; \
	then echo "$$name"; break; fi; done)
BIN := .venv/bin
RUNS := .venv/runs
READY := .venv/ready
PYTEST := $(BIN)/pytest -n 5 -r fEs
unexport PYTHONDONTWRITEBYTECODE  # each worker would compile all tests in each run
# What these test is the source itself, whatever runs: `check` does.
SOURCE := tests/test_architecture.py tests/test_declarations.py tests/test_patterns.py
PROVE := rest stories kills faults models timing

# The folders of tests are in memory where that has 2 GB to spare and may hold programs: commits to a
# disk wait for it.
ifndef PYTEST_DEBUG_TEMPROOT
MEMORY := $(shell df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 && $$4 > 2000000 {print $$6}')
export PYTEST_DEBUG_TEMPROOT := \
	$(shell awk '$$2 == "$(MEMORY)" && $$4 ~ /^rw/ && $$4 !~ /noexec/ {print $$2; exit}' /proc/mounts)
endif

.PHONY: run check test prove bench

run: $(RUNS)
	@exec $(BIN)/turnkeeper run

check: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest $(SOURCE)

# TEST_SEED=… repeats the sample of another run, which said its seed
test: $(READY)
	$(PYTEST) -m 'not slow' $(addprefix --ignore=,$(SOURCE))

# PROVE=kills runs one part of it
prove: $(READY) $(addprefix prove-,$(PROVE))

prove-timing: $(READY)
	$(BIN)/pytest -r fEs -m timing --timeout=1800

prove-%: $(READY)
	$(PYTEST) -m '$* and not sampled' --timeout=1800

bench: $(READY)
	$(BIN)/python -m benchmarks.parked
	$(BIN)/python -m benchmarks.replay
	$(BIN)/python -m benchmarks.agent
	$(BIN)/python -m benchmarks.faults
	$(BIN)/python -m benchmarks.importing
	$(BIN)/python -m benchmarks.jobs
	$(BIN)/python -m benchmarks.acks
	$(BIN)/python -m benchmarks.growth
	$(BIN)/python -m benchmarks.sandboxes
	$(BIN)/python -m benchmarks.guardrails

INSTALL := install --disable-pip-version-check --no-compile -c constraints.txt

# $(call install,extras): pip says what it does. What is not compiled here is when it is imported. A
# recent pip takes half the time of the one that comes with Python, which is slow to install itself.
define install
@if [ -z "$(PYTHON)" ]; then echo "Python 3.11 or newer is missing; install it." >&2; exit 1; fi
@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	{ echo "$(PYTHON) cannot make a venv; install the package python3-venv." >&2; exit 1; }
@echo "Making .venv with $(PYTHON)."
@$(PYTHON) -m venv --without-pip .venv
@echo "Installing into .venv: half a minute or more, once."
@$(PYTHON) -m pip --python $(BIN)/python $(INSTALL) pip >/dev/null 2>&1 || \
	{ $(BIN)/python -m ensurepip >/dev/null && $(BIN)/python -m pip $(INSTALL) -q pip; }
@$(BIN)/python -m pip $(INSTALL) -e '.[$(1)]'
endef

$(RUNS): pyproject.toml constraints.txt
	$(call install,documents)
	@touch $@

$(READY): pyproject.toml constraints.txt
	$(call install,dev)
	@touch $(RUNS) $@
