# One door for everything that is done to this tree; `make` alone lists the targets.
# Needs python3 >= 3.11 and make; all else is installed into .venv from the hashed locks:
# requirements.lock for serving (requirements-tracing.lock beside it for spans), requirements-dev.lock,
# requirements-browser.lock, requirements-docs.lock and requirements-codegen.lock for the tests.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
DEV_STAMP := $(VENV)/.installed-dev
BROWSER_STAMP := $(VENV)/.installed-browser
DOCS_STAMP := $(VENV)/.installed-docs
NODE_FOLDER := tests/support/node
NODE_STAMP := $(NODE_FOLDER)/node_modules/.installed
CODEGEN := $(VENV)/codegen
CODEGEN_STAMP := $(CODEGEN)/.installed
HELM_VERSION := 3.18.6
HELM   := $(BIN)/.helm-$(HELM_VERSION)
MCP_STAMPS := $(VENV)/mcp1/.installed $(VENV)/mcp2/.installed
PIP    := $(BIN)/python -m pip --disable-pip-version-check --no-input
ARGS   ?=
# Tests wait now and then, so more of them run at once than there are cores; each worker collects all.
WORKERS ?= 3
SAMPLE ?= 1500
SEED ?= 1
SHARDS  = $(shell sed -n 's/^\[shards\.\([a-z-]*\)\]/\1/p' tests/proof.toml)

# Without compiled files each test process, and each command that tests start, compiles all anew.
# Files of tests that passed go at once, as they may be in memory.
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -o tmp_path_retention_policy=failed
DAILY  := not proof
FAST   := $(DAILY) and not slow and not browser
# Waiting for a disk is a good part of small tests, so their files are in memory where it has room.
# The tests of power cuts and full disks make disks of their own.
MEMORY := $(shell df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 && $$4 > 2000000 { print "TMPDIR=/dev/shm" }')

# What pytest does to tests so that a failure shows its values costs seconds, so `test-fast` does it
# only for those that failed.
QUICK   = TEST_ENGINES=sqlite $(MEMORY) $(PYTEST) -n $(WORKERS) --dist worksteal -q \
	-m "$(FAST)" -k "not postgres" tests/outbox tests/conformance \
	tests/gateway/records tests/gateway/domain tests/gateway/rest tests/gateway/server tests/gateway/texts

.DEFAULT_GOAL := help
.PHONY: help run demo test test-fast check docs dashboards pictures bench counts mutants proof release lock clean setup

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(DEV_STAMP) ## create or refresh .venv (the other targets install what they need)

run: $(STAMP) ## serve on SQLite; the first start prints how to create the first account
	@$(BIN)/carteiro serve $(ARGS)

demo: $(STAMP) ## a gateway, a receiver and a live table of deliveries; ARGS=--once checks and ends
	@$(BIN)/carteiro demo $(ARGS)

test: $(DEV_STAMP) $(BROWSER_STAMP) $(DOCS_STAMP) $(NODE_STAMP) $(CODEGEN_STAMP) ## show that the code is right: both engines, a visit of each page by a browser, rules of alerts
	@$(MEMORY) $(PYTEST) -n $(WORKERS) --dist worksteal -m "$(DAILY)" $(ARGS)

test-fast: $(DEV_STAMP) ## half a minute: engine, records, domain, REST and server on SQLite, nothing marked slow
	@$(QUICK) --assert=plain $(ARGS) || { \
	  status=$$?; test $$status -ne 1 || $(QUICK) --last-failed $(ARGS); exit $$status; }

check: $(DEV_STAMP) $(BROWSER_STAMP) $(DOCS_STAMP) ## ruff, mypy --strict, import rules, declared dependencies
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy --strict
	@$(BIN)/lint-imports --no-cache
	@$(BIN)/deptry .

docs: $(DEV_STAMP) $(DOCS_STAMP) ## build the site of the docs into build/docs
	@$(BIN)/python -m tests.docs.site

dashboards: $(DEV_STAMP) ## write the Grafana dashboards in dashboards/*.json
	@$(BIN)/python -m dashboards.builder

pictures: $(DEV_STAMP) $(BROWSER_STAMP) ## make the pictures in docs/pictures again (needs Chromium, Prometheus)
	@PICTURES=1 $(PYTEST) -q tests/browser/test_pictures.py $(ARGS)
	@$(BIN)/python -m tests.dashboards.pictures

bench: $(DEV_STAMP) ## benchmarks against bare programs and the baseline; ARGS="write_path" picks
	@$(BIN)/python -m tests.benchmarks $(ARGS)

counts: $(DEV_STAMP) ## calls, statements and rows of an event, alone, at 200 a second, at full load; ARGS="--engine sqlite" picks
	@$(BIN)/python -m tests.benchmarks.counts $(ARGS)

mutants: $(DEV_STAMP) ## the share of small changes to the product that make test notices, by room; ARGS picks paths
	@$(MEMORY) $(BIN)/python -m tests.support.mutants --sample $(SAMPLE) --seed $(SEED) $(ARGS)

proof: $(DEV_STAMP) $(BROWSER_STAMP) $(DOCS_STAMP) $(NODE_STAMP) $(CODEGEN_STAMP) $(HELM) $(MCP_STAMPS) ## what make test leaves out, shard by shard, into proof.json; SHARD="faults pages" picks
	@status=0; for shard in $(or $(SHARD),$(SHARDS)); do \
	  REQUIRE_ALL=1 $(PYTEST) --shard $$shard --timeout 3600 $(ARGS) || status=1; done; exit $$status

release: $(DEV_STAMP) ## write sdist, wheel, image files, SBOM and checksums of HEAD into dist/; RUNBOOK=https://… links alerts
	@.ci/release dist $(RUNBOOK)

lock: $(DEV_STAMP) ## resolve pyproject.toml into the hashed locks (needs the network)
	@$(PIP) install --quiet 'uv>=0.13'
	@$(RESOLVE) --extra postgres --group build pyproject.toml --output-file requirements.lock
	@$(EXTRA) tracing | $(RESOLVE) --constraint requirements.lock - --output-file requirements-tracing.lock
	@$(EXTRA) dev | $(RESOLVE) --constraint requirements.lock --constraint requirements-tracing.lock - \
	    --output-file requirements-dev.lock
	@$(EXTRA) browser | $(RESOLVE) --constraint requirements.lock --constraint requirements-dev.lock - \
	    --output-file requirements-browser.lock
	@$(EXTRA) docs | $(RESOLVE) --constraint requirements.lock --constraint requirements-dev.lock - \
	    --output-file requirements-docs.lock
	@printf '%s\n' $(GENERATORS) | $(RESOLVE) - --output-file requirements-codegen.lock
	@echo 'mcp>=1.30,<2' | $(RESOLVE) - --output-file requirements-mcp1.lock
	@echo 'mcp>=2.3' | $(RESOLVE) - --output-file requirements-mcp2.lock

RESOLVE = env -u PIP_FIND_LINKS -u UV_FIND_LINKS $(BIN)/uv pip compile $(LOCK_FLAGS)
EXTRA   = $(BIN)/python -c "import sys, tomllib; \
	print(*tomllib.load(open('pyproject.toml', 'rb'))['project']['optional-dependencies'][sys.argv[1]], sep='\n')"

# Generators of clients, and FastAPI and Django for the receivers in docs/examples. Django 6 needs 3.12.
GENERATORS := 'ariadne-codegen>=0.19' 'openapi-python-client>=0.29' 'fastapi>=0.165' 'uvicorn>=0.54' 'django>=5.2,<6'

# Each lock is good for 3.11 to 3.14 and names neither a host nor a path.
LOCK_FLAGS := --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-emit-find-links --no-header --no-annotate

clean: ## remove .venv and everything generated (never data/)
	@rm -rf $(VENV) $(NODE_FOLDER)/node_modules build dist carteiro.egg-info .mypy_cache .ruff_cache .pytest_cache \
	    .hypothesis .import_linter_cache
	@find outbox gateway dashboards tests -name __pycache__ -type d -prune -exec rm -rf {} +

$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
	  { echo "carteiro needs Python 3.11 or newer: set PYTHON, for example 'make PYTHON=python3.12 $(firstword $(MAKECMDGOALS))'" >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || \
	  { echo "$(PYTHON) has no venv module: install it (Debian: apt-get install python3-venv)" >&2; exit 1; }
	@test -x $(BIN)/python || { echo "creating $(VENV)" >&2; $(PYTHON) -m venv $(VENV); }
	@$(call install,requirements.lock)
	@echo "installing carteiro itself" >&2
	@$(PIP) install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

# Tests and checks run in the same .venv, on top of what serving needs.
$(DEV_STAMP): requirements-dev.lock $(STAMP)
	@$(call install,requirements-dev.lock)
	@touch $@

# Install a lock and print a line for each package. A pipe has the exit status of its last command,
# so a failure of pip is handed on as a word. Python compiles what is imported when it first is:
# to compile all of it took a third of the time and a quarter of the disk.
install = { $(PIP) install --no-compile --progress-bar off --require-hashes -r $(1) || echo FAILED; } | { \
	all=$$(grep -c == $(1)); n=0; \
	while read -r word name _; do case $$word in \
	  Collecting|Ignoring|Requirement) n=$$((n + 1)); \
	    test $$word != Collecting || echo "  [$$n/$$all] $${name%%[\;]*}";; \
	  Installing) echo "  unpacking them into $(VENV)";; \
	  FAILED) exit 1;; \
	esac; done; } >&2

# Browser tests skip, naming the tool, when this cannot be installed; under REQUIRE_ALL=1 it must.
$(BROWSER_STAMP): requirements-browser.lock $(DEV_STAMP)
	@if $(PIP) install --quiet --require-hashes -r requirements-browser.lock; then touch $@; \
	  elif [ "$(REQUIRE_ALL)" = 1 ]; then exit 1; \
	  else echo "playwright could not be installed: browser tests will skip" >&2; fi

# The site and the check of spelling, in the same way.
$(DOCS_STAMP): requirements-docs.lock $(DEV_STAMP)
	@if $(PIP) install --quiet --no-compile --require-hashes -r requirements-docs.lock; then touch $@; \
	  elif [ "$(REQUIRE_ALL)" = 1 ]; then exit 1; \
	  else echo "mkdocs could not be installed: tests of the site will skip" >&2; fi

# Generators of clients have an environment of their own: one needs another graphql-core than we do.
$(CODEGEN_STAMP): requirements-codegen.lock
	@if $(PYTHON) -m venv $(CODEGEN) && $(CODEGEN)/bin/python -m pip --disable-pip-version-check \
	    --no-input install --quiet --require-hashes -r requirements-codegen.lock; then touch $@; \
	  elif [ "$(REQUIRE_ALL)" = 1 ]; then exit 1; \
	  else echo "generators of clients could not be installed: their tests will skip" >&2; fi

# Both versions of the Python SDK of MCP, as clients in `make proof`.
$(VENV)/mcp%/.installed: requirements-mcp%.lock
	@if $(PYTHON) -m venv $(@D) && $(@D)/bin/python -m pip --disable-pip-version-check \
	    --no-input install --quiet --require-hashes -r $<; then touch $@; \
	  elif [ "$(REQUIRE_ALL)" = 1 ]; then exit 1; \
	  else echo "$< could not be installed: its tests will skip" >&2; fi

# JavaScript packages: axe-core, generators of clients, and what verifies our signatures; as above,
# and without npm their tests skip too.
$(NODE_STAMP): $(NODE_FOLDER)/package-lock.json
	@if command -v npm >/dev/null && \
	    npm ci --prefix $(NODE_FOLDER) --ignore-scripts --no-audit --no-fund --silent; then touch $@; \
	  elif [ "$(REQUIRE_ALL)" = 1 ]; then exit 1; \
	  else echo "npm packages could not be installed: tests that need them will skip" >&2; fi

# Helm, which no Debian has, for the chart; as above. Go checks its modules by their sums.
$(HELM): $(DEV_STAMP)
	@if command -v go >/dev/null && \
	    GOBIN=$(abspath $(BIN)) go install helm.sh/helm/v3/cmd/helm@v$(HELM_VERSION); then touch $@; \
	  elif [ "$(REQUIRE_ALL)" = 1 ]; then exit 1; \
	  else echo "helm could not be built: tests of the chart will skip" >&2; fi
