# Needs Python 3.11 or newer (with venv) and make; everything else is fetched into .venv.

PYTHON ?= python3
VENV   ?= .venv
RUN    ?= .venv-run
PORT   ?= 8080
SIZE   ?= usual
DAYS   ?= 66
SEED   ?= 7
DATA   ?= demo-data
TENANTS ?= 1000

# The official validator of FOCUS data needs older packages than ours, so it has an environment of its own.
FOCUS_VENV ?= .venv-focus

# So have the engines that read the tables.
READERS_VENV ?= .venv-readers

# And other object stores than the tests' own.
STORES_VENV ?= .venv-stores

# And what makes a site of the documentation.
DOCS_VENV ?= .venv-docs
SITE      ?= site

# And what builds packages. PYTHONS=... names the interpreters that they are tried with; without it, those that are there.
PACKAGES_VENV ?= .venv-packages
PYTHONS       ?=
DIST          ?= dist

# Compiled modules are kept even where the environment says otherwise: hundreds of processes import them.
unexport PYTHONDONTWRITEBYTECODE

BIN   := $(VENV)/bin
READY := $(VENV)/.ready

# What only runs the service has an environment without the tools of development, unless those are there already.
RUN_READY := $(if $(wildcard $(READY)),$(READY),$(RUN)/.ready)
RUN_BIN   := $(dir $(RUN_READY))bin
PIP       := -m pip install --disable-pip-version-check

# The browser page, and what it is built from.
PAGE         := src/chargeback/page/static/index.html
PAGE_SOURCES := $(wildcard web/package*.json web/.npmrc web/index.html web/vite.config.ts) $(shell find web/src web/public -type f)
WEB_READY    := web/node_modules/.all
# Tests and doctests, in one process more than there are cores (tests/conftest.py).
PYTEST = $(BIN)/python -m pytest -q -n auto --dist worksteal
TESTED = --doctest-modules --ignore=src/chargeback/store/control/migrations tests src

# Node comes from PyPI with the environment; one of the system may be too old.
WITH_NODE     = PATH="$(abspath $(1)):$$PATH"

# $(call environment,FOLDER,STEPS): an empty virtual environment with a Python that is new enough, the first of so many steps.
define environment
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@echo "1/$(2)  Making the virtual environment $(1)"
	@$(PYTHON) -m venv $(1) || { echo "the venv module is needed (Debian: apt-get install python3-venv)" >&2; exit 1; }
endef

# What .ci/run looks for: a check that could not be made is not one that failed.
FOCUS_MISSING := $(FOCUS_VENV)/.cannot-be-had
DOCS_MISSING  := $(DOCS_VENV)/.cannot-be-had
NOT_CHECKED   := touch $(FOCUS_MISSING); echo "The packages of the official validator cannot be had: the bill in FOCUS was NOT CHECKED by it." >&2; exit 1

.DEFAULT_GOAL := help
.PHONY: help setup page page-or-not demo test test-all mutants recorded shape check bench bench-quick bench-large bench-fleet focus-check readers stores docs packages sbom drill night lock clean servers container-test

help:  ## What there is (this list)
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo
	@echo "  PYTHON=$(PYTHON)  chooses the interpreter;  demo: PORT=$(PORT) SIZE=$(SIZE) (small, usual, large) DAYS=$(DAYS) SEED=$(SEED) DATA=$(DATA)"

setup: $(READY)  ## The virtual environment and the browser page, from the locked dependencies
	@$(MAKE) --no-print-directory page-or-not

$(READY): requirements/dev.lock pyproject.toml
	$(call environment,$(VENV),3)
	@echo "2/3  Installing what development needs, from requirements/dev.lock (a minute or two)"
	@$(BIN)/python $(PIP) --quiet --require-hashes -r requirements/dev.lock
	@echo "3/3  Installing this package"
	@$(BIN)/python $(PIP) --quiet --no-deps -e .
	@touch $@

$(RUN)/.ready: requirements/runtime.lock pyproject.toml
	$(call environment,$(RUN),3)
	@echo "2/3  Installing what the service needs, from requirements/runtime.lock (some 120 MB, a minute or so)"
	@$(RUN)/bin/python $(PIP) --quiet --require-hashes -r requirements/runtime.lock
	@echo "3/3  Installing this package"
	@$(RUN)/bin/python $(PIP) --quiet --no-deps -e .
	@touch $@

page: $(RUN_READY) $(PAGE)  ## The browser page, from web/ (part of setup and demo)

$(PAGE): $(PAGE_SOURCES)
	@test -x $(RUN_BIN)/npm || $(RUN_BIN)/python $(PIP) --quiet --require-hashes -r requirements/page.lock
	@echo "Building the browser page (the first time it fetches what the build needs, some 50 MB)"
	@cd web && export $(call WITH_NODE,$(RUN_BIN)) && { test node_modules/.all -nt package-lock.json || test node_modules/.build -nt package-lock.json \
	  || { npm ci --omit=dev --silent && touch node_modules/.build; }; } && node node_modules/vite/bin/vite.js build --logLevel warn

# Without a registry of npm everything but the page works.
page-or-not:
	@$(MAKE) --no-print-directory $(PAGE) || echo "The browser page could not be built; all else works. \`make page\` tries again." >&2

$(WEB_READY): web/package-lock.json | $(READY)
	@cd web && $(call WITH_NODE,$(BIN)) npm ci --silent && touch node_modules/.all

demo: $(RUN_READY) page-or-not  ## A generated organisation: allocated, summed up and served on 127.0.0.1:PORT until Ctrl-C
	@$(RUN_BIN)/chargeback demo --port $(PORT) --size $(SIZE) --days $(DAYS) --seed $(SEED) --data $(DATA)

test: setup servers $(WEB_READY)  ## The everyday tests: in some five minutes on two cores, whether a change is right
	@$(MAKE) --no-print-directory page
	@$(PYTEST) --everyday -m "not drill" $(TESTED)

test-all: setup servers $(WEB_READY)  ## All tests but the drills: also every server, browser and process (some twenty minutes on two cores)
	@$(MAKE) --no-print-directory page
	@$(PYTEST) -m "not drill" $(TESTED)

mutants: setup servers  ## Put some sixty faults into a copy of the code, one after the other: which tests notice (half an hour)
	@$(BIN)/python -m tests.mutants

recorded: setup  ## Record what the service answers, to compare it after a refactoring: STORAGE=folder OUT=new.json
	@test -n "$(STORAGE)" -a -n "$(OUT)" || { echo "usage: make recorded STORAGE=/tmp/storage OUT=/tmp/before.json" >&2; exit 1; }
	@test -e "$(STORAGE)/questions.json" || $(BIN)/python -m tests.recorded --prepare "$(STORAGE)"
	@$(BIN)/python -m tests.recorded "$(STORAGE)" "$(OUT)"

shape: setup  ## The shape of the code as a table: its size, the way of two requests, how modules depend on each other
	@$(BIN)/python -m tests.shape

check: setup $(WEB_READY)  ## Style, types, layers, dependencies, and that the documentation matches the code
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy --strict
	@$(BIN)/lint-imports
	@cd web && $(call WITH_NODE,$(BIN)) npm run --silent check
	@$(BIN)/python -m pytest -q tests/config/test_documentation.py tests/contract/test_documents.py tests/test_project.py tests/security/test_dependencies.py

bench: setup servers  ## The measured bars, as a table and as JSON
	@$(BIN)/python -m benchmarks

bench-quick: setup servers  ## The same in two or three minutes, on a small tenant
	@$(BIN)/python -m benchmarks --quick

drill: setup servers $(WEB_READY)  ## Long failure drills, and laws with many more cases (an hour); their table is kept in docs/reliability.md
	@$(BIN)/python -m pytest -q -n 3 --dist worksteal -m "(drill or hypothesis) and not night" --thorough --drill-report docs/reliability.md tests

night: setup servers  ## More random cases of what drills check: histories of the pipeline, explained amounts, earlier instants (some hours)
	@$(PYTEST) -m night --thorough tests

bench-large: setup  ## A tenant of 100 million rows, generated once: sums and lists of all time (10 GiB, half an hour)
	@$(BIN)/python -m benchmarks --huge

bench-fleet: setup servers  ## What a worker needs for TENANTS tenants, of which one in a hundred has news
	@$(BIN)/python -m benchmarks --only fleet --tenants $(TENANTS)

focus-check: setup $(FOCUS_VENV)/.ready  ## The official validator over the bill in FOCUS: exactly the known rules fail
	@$(BIN)/python -m conformance $(FOCUS_VENV)/bin/python

$(FOCUS_VENV)/.ready: requirements/focus.lock requirements/focus-validator.lock conformance/one_line.py
	$(call environment,$(FOCUS_VENV),3)
	@rm -f $(FOCUS_MISSING)
	@echo "2/3  Installing what the validator needs, from requirements/focus.lock (some 600 MB, a minute or two)"
	@$(FOCUS_VENV)/bin/python $(PIP) --quiet --require-hashes --only-binary=:all: -r requirements/focus.lock || { $(NOT_CHECKED); }
	@echo "3/3  Installing the validator"
	@$(FOCUS_VENV)/bin/python $(PIP) --quiet --require-hashes --no-deps --no-build-isolation --ignore-requires-python \
	  -r requirements/focus-validator.lock || { $(NOT_CHECKED); }
	@$(FOCUS_VENV)/bin/python -m conformance.one_line
	@touch $@

readers: setup $(READERS_VENV)/.ready  ## Other engines (DuckDB, Spark, Spark Connect) read the tables: the same sums of each day
	@command -v java >/dev/null || { echo "Spark needs Java 17 or newer (Debian: apt-get install default-jre-headless)" >&2; exit 1; }
	@$(BIN)/python -m readers $(READERS_VENV)/bin/python

$(READERS_VENV)/.ready: requirements/readers.lock
	$(call environment,$(READERS_VENV),2)
	@echo "2/2  Installing the engines, from requirements/readers.lock (some 1.2 GB, a minute or more)"
	@$(READERS_VENV)/bin/python $(PIP) --quiet --require-hashes -r requirements/readers.lock
	@touch $@

stores: setup servers $(STORES_VENV)/.ready stores/node_modules/.all  ## Other object stores (moto, Azurite, s3rver without conditional writes): the same tests pass
	@$(BIN)/python -m stores $(STORES_VENV)/bin/python

$(STORES_VENV)/.ready: requirements/stores.lock
	$(call environment,$(STORES_VENV),2)
	@echo "2/2  Installing moto and a client of Azure, from requirements/stores.lock (some 325 MB, half a minute)"
	@$(STORES_VENV)/bin/python $(PIP) --quiet --require-hashes -r requirements/stores.lock
	@touch $@

stores/node_modules/.all: stores/package-lock.json | $(READY)
	@cd stores && $(call WITH_NODE,$(BIN)) npm ci --silent && touch node_modules/.all

docs: $(DOCS_VENV)/.ready  ## The documentation as a site in site/, for which no network is needed; every warning is an error
	@$(DOCS_VENV)/bin/python -m website $(SITE)

$(DOCS_VENV)/.ready: requirements/docs.lock
	$(call environment,$(DOCS_VENV),2)
	@rm -f $(DOCS_MISSING)
	@echo "2/2  Installing the generator, from requirements/docs.lock (some 15 MB, ten seconds)"
	@$(DOCS_VENV)/bin/python $(PIP) --quiet --require-hashes --only-binary=:all: -r requirements/docs.lock || { touch $(DOCS_MISSING); \
	  echo "The generator of the site cannot be had: the site of the documentation was NOT BUILT." >&2; exit 1; }
	@touch $@

packages: page $(PACKAGES_VENV)/.ready  ## Wheel and source distribution in dist/; each is installed anew with every Python that is there, and runs the demo
	@$(PACKAGES_VENV)/bin/python -m release.packages $(DIST) $(PYTHONS)

sbom: $(RUN)/.ready $(PACKAGES_VENV)/.ready  ## What is shipped, with versions and licences (CycloneDX), in dist/
	@$(PACKAGES_VENV)/bin/python -m release.sbom $(RUN)/bin/python $(DIST)

$(PACKAGES_VENV)/.ready: requirements/packages.lock
	$(call environment,$(PACKAGES_VENV),2)
	@echo "2/2  Installing what builds packages, from requirements/packages.lock (some 20 MB, ten seconds)"
	@$(PACKAGES_VENV)/bin/python $(PIP) --quiet --require-hashes -r requirements/packages.lock
	@touch $@

container-test:  ## Build the image, and run it with the configuration that `chargeback init` writes (needs podman or docker)
	@deploy/container-test

lock:  ## New versions of all dependencies into requirements/ (needs uv)
	@command -v uv >/dev/null || { echo "make lock needs uv: https://docs.astral.sh/uv/" >&2; exit 1; }
	uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --upgrade -o requirements/runtime.lock
	uv pip compile pyproject.toml --extra dask --extra mcp --extra pdf -c requirements/runtime.lock --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --upgrade -o requirements/image.lock
	uv pip compile requirements/page.in --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --upgrade -o requirements/page.lock
	uv pip compile requirements/focus.in --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --upgrade -o requirements/focus.lock
	uv pip compile requirements/docs.in --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --upgrade -o requirements/docs.lock
	uv pip compile requirements/packages.in --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --upgrade -o requirements/packages.lock
	uv pip compile requirements/stores.in --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --upgrade -o requirements/stores.lock
	uv pip compile requirements/readers.in --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --upgrade -o requirements/readers.lock
	uv pip compile pyproject.toml --group dev -c requirements/runtime.lock --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --upgrade -o requirements/dev.lock

clean:  ## Remove what was made here, but no data
	rm -rf $(VENV) $(RUN) $(FOCUS_VENV) $(READERS_VENV) $(STORES_VENV) $(DOCS_VENV) $(SITE) $(PACKAGES_VENV) web/node_modules stores/node_modules $(dir $(PAGE)) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache dist
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

# The tests talk to real servers, each on a loopback port of its own: a Prometheus (server and promtool) and its Alertmanager, an nginx, an
# Apache that signs people on, and a PostgreSQL (one that runs already serves for most of them). faketime puts clocks
# wrong. iproute2 connects hosts of a drill. chromium-headless-shell, a Chromium that needs half the time of one with windows, shows the page, and Pango sets the PDF files of statements. curl and jq do what the documentation says that a CI job does.
# Where systemd runs, Debian's packages also start services on their usual ports, which nothing here needs.
servers:
	@missing=""; \
	{ command -v prometheus && command -v promtool; } >/dev/null || missing="prometheus"; \
	command -v prometheus-alertmanager >/dev/null || missing="$$missing prometheus-alertmanager"; \
	command -v initdb >/dev/null || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || missing="$$missing postgresql"; \
	command -v openssl >/dev/null || missing="$$missing openssl"; \
	command -v faketime >/dev/null || missing="$$missing faketime"; \
	PATH="$$PATH:/usr/sbin:/sbin" command -v ip >/dev/null || missing="$$missing iproute2"; \
	PATH="$$PATH:/usr/sbin" command -v nginx >/dev/null || missing="$$missing nginx-light"; \
	{ command -v chromium-headless-shell || command -v chromium; } >/dev/null || missing="$$missing chromium-headless-shell"; \
	PATH="$$PATH:/usr/sbin" command -v apache2 >/dev/null || missing="$$missing apache2-bin"; \
	ls /usr/lib/apache2/modules/mod_auth_openidc.so >/dev/null 2>&1 || missing="$$missing libapache2-mod-auth-openidc"; \
	PATH="$$PATH:/usr/sbin:/sbin"; ldconfig -p | grep -q libpangoft2-1.0.so.0 \
	  || missing="$$missing libpango-1.0-0 libpangoft2-1.0-0 libharfbuzz-subset0 fonts-dejavu-core"; \
	command -v curl >/dev/null || missing="$$missing curl"; \
	command -v jq >/dev/null || missing="$$missing jq"; \
	test -z "$$missing" && exit 0; \
	echo "installing Debian's $$missing" >&2; \
	if [ "$$(id -u)" = 0 ]; then as=""; else as="sudo -n"; fi; \
	if command -v apt-get >/dev/null && $$as true 2>/dev/null && $$as apt-get update -qq \
	  && $$as env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $$missing >/dev/null; then exit 0; fi; \
	echo "the tests need real servers on this machine; on Debian or Ubuntu:" >&2; \
	echo "    sudo apt-get install --no-install-recommends $$missing" >&2; exit 1
