# SPDX-License-Identifier: Apache-2.0

# One environment serves everything: Heat and the services of the mini cloud,
# heat-plugins from this checkout, and what the tests need.
export MINICLOUD_HOME ?= $(CURDIR)/.minicloud
VENV ?= $(MINICLOUD_HOME)/venv
PYTHON := $(VENV)/bin/python
STAMP := $(VENV)/.heat-plugins-installed
DOCS_STAMP := $(VENV)/.heat-plugins-docs-installed
BROWSER_STAMP := $(VENV)/.heat-plugins-browser-installed
DIST_STAMP := $(VENV)/.heat-plugins-dist-installed

# Prints errors only: pip warns of each package that an index of the machine's
# configuration does not have.
PIP := $(PYTHON) -m pip install -qq --disable-pip-version-check

# How the environment is made, and what the demo is.
MINICLOUD ?= contrib/minicloud/minicloud
DEMO ?= contrib/demo/run

# The versions that the mini cloud is known to work with.
CONSTRAINTS := $(wildcard contrib/minicloud/constraints.txt)

# How many processes run the tests. Each waits for much of its time, for clouds
# or for agents. Each of the functional tests has mini clouds of its own.
JOBS ?= 4
do-unit do-coverage: JOBS = $(shell expr 1 + $$(nproc))

# How often a functional test that fails runs once more, and how many of them.
# `make test` retries nothing: what passes on the second try has a race, which
# may be ours.
RERUNS ?= 0
RERUNS_AT_MOST ?= 1
RERUN = --reruns $(RERUNS) --max-suite-reruns $(RERUNS_AT_MOST) \
    --rerun-show-tracebacks

# Which functional tests run, by their markers; pyproject.toml explains them.
FUNCTIONAL ?= not server and not installations and not browser

# Where test-production and test-server find their tests, what test-heats runs,
# with which options of tox, and which Python it finds there, and which Pythons
# test-rest looks for, if not for all that are supported.
PRODUCTION ?= tests/functional
SERVER ?= tests/functional
BROWSER ?= tests/functional/test_dashboard.py
HEATS ?= heat24,heat25,heat26,heat27
TOX ?=
DISCOVER ?=
PYTHONS ?=

# What test-rgw runs on Ceph's gateway: whatever touches the object store.
RGW ?= $(wildcard $(addprefix tests/functional/test_, $(addsuffix .py, \
    rgw transports lifecycle runs live_runs triggers plans faults status \
    threat_model key_rotation)))

# For pytest, such as ARGS='-k registry', or for the bench: ARGS=--help.
ARGS ?=

PYTEST = $(PYTHON) -m pytest --numprocesses $(JOBS) --durations 30
TIMES := $(MINICLOUD_HOME)/times

.DEFAULT_GOAL := help

# Each of these has a recipe under `do-<name>`, and keeps the time it took.
TIMED := lint unit docs functional functional-quick test test-rest test-all \
    test-production test-rgw test-server test-installations \
    test-browser demo-dashboard dashboard-pictures \
    test-heats coverage kills bench demo demo-plan demo-server venv \
    pictures links agent-packages dist
.PHONY: help install-production install-rgw install-browser $(TIMED) $(TIMED:%=do-%)

help:
	@printf '%-25s%19s\n' '' 'last run took'
	@sed -n 's/^\([a-z-]*\):.*## /\1 /p' Makefile | \
	while read -r target purpose; do \
	    took=$$(cat $(TIMES)/$$target 2>/dev/null || echo -); \
	    printf 'make %-20s%19s  %s\n' "$$target" "$$took" "$$purpose"; \
	done

pictures: ## draw the pages' pictures again; needs Debian's graphviz
demo: ## watch a real Heat deploy software and run workflows
demo-plan: ## watch templates become a plan that is deployed
demo-dashboard: ## press the button in Horizon: a cloud, servers, a login
dashboard-pictures: ## draw the pictures of that page again
demo-server: ## watch Nova start, rebuild and delete a server of a stack
lint: ## ruff, mypy, import-linter, words, spelling, bandit and pip-audit
unit: ## the tests without a cloud; BAD_INPUT=long makes up input for an hour
docs: ## the pages for users, in doc/build: html and man
links: ## do the pages' links to the web still lead somewhere? by hand
functional: ## all tests on the mini cloud
functional-quick: ## those on the mini cloud that are marked quick
test: ## lint, unit, docs and functional-quick; retries nothing
test-rest: ## what `test` leaves out; older Pythons and Heats, other services
test-all: ## everything, as CI runs it
test-production: ## all and more on RabbitMQ, MariaDB, TLS; as root, on Debian
test-rgw: ## the object store's tests on Ceph's gateway; as root, on Debian
test-server: ## virtual machines, and the add-on; as root, on Debian
test-browser: ## the pages in Horizon, in chromium; as root, on Debian
test-installations: ## Heat of Debian, of Ubuntu, in a venv; as root, on Debian
test-heats: ## the unit tests under each Heat that is supported
coverage: ## the unit tests, and which branches they do not reach
kills: ## the engine that delivers, or leads a run, dies at each step
bench: ## measure what waiting and runs cost: an hour; ARGS=--help selects
dist: ## what a release consists of, in dist: sdist, wheel, Debian's packages
agent-packages: ## contrib/agent as a wheel and for Debian, in build/agent
venv: ## the environment for all of these

$(TIMED):
	@begun=$$(date +%s); \
	$(MAKE) --no-print-directory do-$@; code=$$?; \
	took=$$(($$(date +%s) - begun)); \
	took="$$((took / 60)) min $$((took % 60)) s"; \
	[ $$code = 0 ] && end=done || end=failed took="$$took (failed)"; \
	echo "make $@: $$end after $${took% (failed)}"; \
	mkdir -p $(TIMES); echo "$$took" >$(TIMES)/$@; exit $$code

do-venv: $(STAMP)

$(PYTHON):
	$(MINICLOUD) install

# Entry points and requirements are read at installation only, so a change of
# them asks for another one.
$(STAMP): setup.cfg requirements.txt pyproject.toml | $(PYTHON)
	$(PIP) \
	    $(CONSTRAINTS:%=--constraint %) --editable '.[engine,test,validations]'
	@touch $@

do-lint: $(STAMP)
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m mypy
	$(PYTHON) tests/words.py .ci/words.toml
	git ls-files -z | xargs -0 $(VENV)/bin/codespell
	$(VENV)/bin/lint-imports --no-logo --no-cache
	$(PYTHON) -m bandit --quiet --configfile pyproject.toml \
	    --recursive heat_plugins contrib
	.ci/audit $(PYTHON)

# The unit tests have Heat in their own process, and with it what eventlet does
# to Python's modules; so the others run apart. Those spend most of their time
# waiting for agents. Whichever process is idle takes tests from another.
do-unit: $(STAMP)
	$(PYTEST) --dist loadfile tests/unit $(ARGS)

do-functional-quick: FUNCTIONAL = quick
do-functional do-functional-quick: $(STAMP)
	$(PYTEST) --dist worksteal $(RERUN) -m '$(FUNCTIONAL)' tests/functional \
	    $(ARGS)

# What fails soonest comes first; two of them have a core each. Prerequisites, as
# --keep-going continues after one that fails.
ifndef SIDE_BY_SIDE
.NOTPARALLEL:
endif
do-test: $(STAMP) $(DOCS_STAMP) lint-and-docs unit functional-quick

.PHONY: lint-and-docs
lint-and-docs:
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target \
	    SIDE_BY_SIDE=yes lint docs

do-test-rest: $(STAMP)
	$(PYTHON) -m tests.rest run $(PYTHONS)

do-test-all:
	.ci/run

do-coverage: $(STAMP)
	$(PYTEST) --dist loadfile --cov heat_plugins \
	    --cov-report term:skip-covered --cov-report html tests/unit $(ARGS)

install-production: $(STAMP)
	$(MINICLOUD) install --profile production

do-test-production: install-production
	FUNCTIONAL_PROFILE=production $(PYTHON) -m pytest --durations 30 \
	    $(RERUN) -m '$(FUNCTIONAL)' $(PRODUCTION) $(ARGS)

install-rgw: $(STAMP)
	$(MINICLOUD) install --store rgw

do-test-rgw: install-rgw
	FUNCTIONAL_STORE=rgw $(PYTEST) --dist worksteal $(RERUN) \
	    -m '$(FUNCTIONAL)' $(RGW) $(ARGS)

do-test-installations: $(STAMP)
	$(MINICLOUD) install
	$(PYTHON) -m pytest --durations 30 -m installations \
	    tests/functional/test_installations.py $(ARGS)

# Alone, as the tests of others may run meanwhile.
$(BROWSER_STAMP): $(STAMP)
	$(PIP) $(CONSTRAINTS:%=--constraint %) playwright
	@touch $@

install-browser: $(BROWSER_STAMP)
	$(MINICLOUD) install --with dashboard --browser

do-test-browser: install-browser
	$(PYTHON) -m pytest --durations 30 $(RERUN) -m browser \
	    $(BROWSER) $(ARGS)

do-demo-dashboard: $(STAMP)
	contrib/demo/run-dashboard $(ARGS)

do-dashboard-pictures: install-browser
	$(PYTHON) -m tests.functional.dashboard_pictures

# One machine at a time: each takes a core.
do-test-server: $(STAMP)
	$(MINICLOUD) server build
	$(PYTHON) -m pytest --durations 30 $(RERUN) -m server $(SERVER) $(ARGS)

do-kills: $(STAMP)
	$(PYTHON) -m tests.functional.run_kills $(ARGS)

do-test-heats: $(STAMP)
	$(PYTHON) -m tox run $(TOX) $(if $(DISCOVER),--discover $(DISCOVER)) \
	    -e $(HEATS) -- $(ARGS)

do-demo: $(STAMP)
	$(DEMO) $(ARGS)

do-demo-plan: $(STAMP)
	contrib/demo/run-plan

do-demo-server: $(STAMP)
	contrib/demo/run-server

do-bench: $(STAMP)
	$(PYTHON) -m tests.bench $(ARGS)

$(DOCS_STAMP): $(STAMP)
	$(PIP) \
	    $(CONSTRAINTS:%=--constraint %) --editable '.[docs]'
	@touch $@

.PHONY: venv-docs
venv-docs: $(DOCS_STAMP)

# Read once, for both.
DOCTREES := doc/build/doctrees

do-pictures: $(STAMP)
	$(PYTHON) doc/pictures/render.py

do-agent-packages: $(STAMP)
	contrib/agent/packages build/agent $(PYTHON)

$(DIST_STAMP): $(STAMP)
	$(PIP) \
	    $(CONSTRAINTS:%=--constraint %) --editable '.[dist]'
	@touch $@

do-dist: $(DIST_STAMP)
	rm -rf dist
	$(PYTHON) contrib/packages/build.py dist
	$(PYTHON) -m twine check --strict dist/*.whl dist/*.tar.gz

do-links: $(DOCS_STAMP)
	$(PYTHON) -m sphinx -b linkcheck -q -d $(DOCTREES) \
	    doc/source doc/build/links

do-docs: $(DOCS_STAMP)
	$(PYTHON) doc/pictures/render.py --check
	$(PYTHON) -m sphinx -W --keep-going -q -d $(DOCTREES) \
	    doc/source doc/build/html
	$(PYTHON) -m sphinx -b man -W --keep-going -q -d $(DOCTREES) \
	    doc/source doc/build/man
