# Everything here sets itself up; nothing but Python >= 3.11 and make is needed.
SHELL := /bin/sh
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= python3
ARGS ?=
TESTS ?= tests
# Tests mostly wait, so workers pay beyond the number of cores. A single file takes none, nor does a PostgreSQL of yours:
# theirs would make roles in it at the same time.
WORKERS ?= $(if $(or $(findstring .py,$(TESTS)),$(COUNTERFOIL_DATABASE_URL)),0,3)

BIN := .venv/bin
PIP := $(BIN)/python -m pip -qq --disable-pip-version-check
STAMP := .venv/.set-up
COMPILE := $(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-annotate \
  --no-header --no-emit-index-url --no-emit-find-links

.PHONY: help setup demo test sim helm-test drills bench bench-million bench-kill bench-fair compare fuzz check lock clean

help:  ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "make %-13s %s\n", $$1, $$2}' Makefile

# The stamp holds the folder that the environment was made in: a moved or copied checkout is set up anew. Without a
# stamp a set-up was broken off half-way, and what pip left of it can't be trusted. The lock is complete, so pip resolves
# nothing (--no-deps: pip 23 does not see that a[x]>=1 is met by a hashed a==2); `pip check` proves it.
setup:  ## make .venv with everything in it, from the hashed lock (speaks on stderr only)
	@{ \
	if [ -f $(STAMP) ] && [ "$$(cat $(STAMP))" = "$$PWD" ] && $(BIN)/python -c '' 2>/dev/null; then \
	  [ -z "$$(find requirements.lock pyproject.toml -newer $(STAMP))" ] && exit 0; \
	else \
	  python=; \
	  for candidate in "$(PYTHON)" python3.14 python3.13 python3.12 python3.11; do \
	    if "$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then python=$$candidate; break; fi; \
	  done; \
	  if [ -z "$$python" ]; then \
	    echo 'No Python >= 3.11 found. Install one, or name it: make setup PYTHON=/path/to/python3'; exit 1; \
	  fi; \
	  if ! "$$python" -c 'import ensurepip, venv' 2>/dev/null; then \
	    echo "$$python has no venv module (Debian and Ubuntu: apt install python3-venv)."; exit 1; \
	  fi; \
	  echo "setting up .venv with $$($$python --version)"; \
	  "$$python" -m venv --clear .venv || exit 1; \
	fi; \
	rm -f $(STAMP); \
	$(PIP) install --require-hashes --no-deps --only-binary :all: -r requirements.lock || exit 1; \
	$(PIP) install --no-deps --no-build-isolation -e . || exit 1; \
	$(BIN)/python -m pip check >/dev/null || { $(BIN)/python -m pip check; exit 1; }; \
	printf '%s\n' "$$PWD" > $(STAMP); \
	} >&2

demo: setup  ## run the main job on real parts (ARGS=--json: one object an operation)
	@$(BIN)/counterfoil demo $(ARGS)

test: setup  ## run the tests (TESTS=tests/ledger narrows them, ARGS="-k name -x" goes to pytest, WORKERS=0: one by one)
	@$(BIN)/python -m pytest -c tests/pytest.ini -n $(WORKERS) $(TESTS) $(ARGS)

sim: setup  ## thousands of orderings, then mutants (N=500 QUICK=1; SEED=17 FAMILY="2026 blind" tells one as a story)
	@PYTHONHASHSEED=0 $(BIN)/python -m counterfoil.tests.sim

compare: setup  ## people's own clients beside ours on the same faults (ONLY=submit-lost; REPORT=1 writes docs/compare.md)
	@$(BIN)/python -m counterfoil.tests.compare

fuzz: setup  ## 10,000 hostile answers to each test of what an adapter reads (N=500: as in `make test`)
	@FUZZ_EXAMPLES=$(or $(N),10000) $(BIN)/python -m pytest -c tests/pytest.ini -n 2 -m fuzz -v \
	  -o faulthandler_timeout=0 tests/adapters tests/examples $(ARGS)

bench: setup  ## what an operation costs, beside the bare loops and the durable peers (QUICK=1 under 110 s; REPORT=1 PROFILE=1)
	@$(if $(QUICK),,$(MAKE) --no-print-directory build/peers/.set-up)
	@$(BIN)/python -P -m counterfoil.bench

bench-million: setup  ## a poll with a million operations in flight, against ten thousand (SECONDS=600; QUICK=1: 60)
	@$(BIN)/python -P -m counterfoil.bench million

bench-kill: setup  ## a worker ended by SIGKILL with 300 in flight, on a target with lookup and on one without
	@$(BIN)/python -P -m counterfoil.bench kill

bench-fair: setup  ## polls beside a slow and a dead target, cancels where polls are six times what the target takes
	@$(BIN)/python -P -m counterfoil.bench fair

# restate's server comes from npm; without npm it is left out, and the run says so.
build/peers/.set-up: bench/peers.lock bench/peers/package-lock.json
	@rm -rf build/peers build/peers-node && mkdir -p build && $(BIN)/python -m venv build/peers
	@build/peers/bin/python -m pip -qq --disable-pip-version-check install --require-hashes --no-deps \
	  --only-binary :all: -r bench/peers.lock
	@mkdir -p build/peers-node && cp bench/peers/package.json bench/peers/package-lock.json build/peers-node
	@cd build/peers-node && { npm ci --no-audit --no-fund --ignore-scripts >/dev/null 2>&1 || echo 'no npm: no restate' >&2; }
	@touch $@

helm-test: .venv/.set-up-helm  ## the chart through Helm itself: value sets, roll-outs and roll-backs of real fleets, the image
	@$(BIN)/python -m pytest -c tests/pytest.ini -n $(WORKERS) --dist worksteal tests/helm $(ARGS)

drills: .venv/.set-up-helm  ## 100 rolling restarts under load (RESTARTS=500)
	@RESTARTS=$${RESTARTS:-100} $(BIN)/python -m pytest -c tests/pytest.ini -s tests/helm/test_restarts.py $(ARGS)

.venv/.set-up-helm: tests/helm/requirements.lock | setup
	@$(PIP) install --require-hashes --no-deps --only-binary :all: -r tests/helm/requirements.lock && touch $@

check: setup .types/counterfoil  ## lint, types, import contracts, and what the repository says about itself
	@failed=; \
	for each in 'ruff check .' 'ruff format --check .' 'mypy -p counterfoil' 'lint-imports --no-cache' \
	  'python -m pytest -c tests/pytest.ini tests/tidy -q'; do \
	  PYTHONPATH=.types $(BIN)/$$each || failed="$$failed [$$each]"; \
	done; \
	[ -z "$$failed" ] || { echo "failed:$$failed" >&2; exit 1; }

.types/counterfoil:
	@mkdir -p .types && ln -sfn .. .types/counterfoil

lock: setup  ## resolve requirements.lock anew from pyproject.toml, its parts, and the peers' from tests/peers/python.in and bench/peers.in
	@$(PIP) install uv
	@{ echo '# Every version exact and hashed, for Linux and macOS. Made by `make lock`; names no place to fetch from.'; \
	$(COMPILE) pyproject.toml --all-extras --group build; } > requirements.lock.new
	@mv requirements.lock.new requirements.lock
	@# Some of it, in the same versions: what the image has; what tests of the chart need beside.
	@$(COMPILE) pyproject.toml --extra otel --constraint requirements.lock > requirements.fleet.lock
	@$(COMPILE) --group helm --constraint requirements.lock > tests/helm/requirements.lock
	@for peers in tests/peers/python bench/peers; do \
	  { echo '# Every version exact and hashed. Made by `make lock`; names no place to fetch from.'; \
	  $(COMPILE) $$peers.in; } > requirements.lock.new && mv requirements.lock.new $$peers.lock || exit 1; \
	done

clean:  ## remove what was made here; a development stack's data stay (counterfoil dev reset)
	@rm -rf .venv .types tests/peers/python build dist *.egg-info .mypy_cache .ruff_cache .hypothesis .import_linter_cache requirements.lock.new
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
	@find tests -name .pytest_cache -type d -prune -exec rm -rf {} +
