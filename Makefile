# Every target sets up what it needs: a bare Python 3.11 and make are enough.
#   make audit    audit the literature, write out/record.json and out/report.html
#   make test     run the tests; make test-all also what CI runs beside them, make nightly the rest
# PYTHON=/path/to/python chooses the interpreter. All paths are relative, so the clone may lie anywhere.

.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
.PHONY: help setup test test-all test-slow nightly coverage fuzz mutation lint audit libraries libraries-smartnoise libraries-dpmm libraries-few bench regret golden golden-write docs lowest newest lock site release-check clean

BIN := .venv/bin
READY := .venv/ready
SITE := .venv-site

COMPUTING := audit bench coverage docs fuzz golden golden-write libraries libraries-smartnoise libraries-dpmm libraries-few mutation nightly regret site test test-slow

# The workers are processes; threads inside them would only fight for the same cores. And glibc shall keep what one
# block of runs frees for the next one: new pages are slow.
$(COMPUTING): export OMP_NUM_THREADS := 1
$(COMPUTING): export OPENBLAS_NUM_THREADS := 1
$(COMPUTING): export MKL_NUM_THREADS := 1
$(COMPUTING): export MALLOC_TRIM_THRESHOLD_ := 67108864
$(COMPUTING): export MALLOC_MMAP_THRESHOLD_ := 33554432
# Hundreds of processes start: none shall compile anew what another one has.
$(COMPUTING): export PYTHONDONTWRITEBYTECODE :=

help:
	@sed -n '2,4s/^# *//p' Makefile
	@echo 'also: setup, lint, test-slow, libraries, libraries-smartnoise, libraries-dpmm, libraries-few, coverage, fuzz, mutation, bench, regret, golden, golden-write, docs, site, lowest, newest, lock, release-check, clean'

setup: $(READY)

# Hashes pin every download; the project itself is then built by the locked setuptools, without isolation. Python
# compiles what is imported: to compile all of it beforehand takes pip as long as all else.
$(READY): pyproject.toml requirements.lock
	@echo 'setup: a virtual environment in .venv, with the locked dependencies'
	@for python in $(if $(PYTHON),"$(PYTHON)",python3 python3.11 python3.12 python3.13 python3.14); do \
	    if "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	        && "$$python" -m venv .venv; then exit 0; fi; \
	done; \
	echo 'setup: needs Python 3.11 or newer; name one with make PYTHON=/path/to/python' >&2; exit 1
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $(READY)

# Tests of a file share what takes long to set up, and therefore a worker. (xdist groups are lost on pytest 9.2.)
test: $(READY)
	@echo 'test: pytest, one worker per core'
	@$(BIN)/python -m pytest -n auto --dist loadfile -m 'not slow and not nightly and not lint'

# Other seeds and forms, long games, whole commands.
test-slow: $(READY)
	@echo 'test-slow: what CI runs beside the quick tests'
	@$(BIN)/python -m pytest -n auto --dist loadfile -m 'slow and not nightly'

test-all: test test-slow

# Before a release: long calibrations, kills by the dozen, twins of mutants, and the versions that CI leaves out.
nightly: $(READY) newest
	@echo 'nightly: the exhaustive tests'
	@$(BIN)/python -m pytest -n auto --dist loadfile -m nightly

coverage: $(READY)
	@echo 'coverage: the tests, worker processes included; 95 % of the lines of each room that decides'
	@$(BIN)/python -m pytest -n auto --dist loadfile --cov --cov-report=
	@for room in mechanisms learners audit; do $(BIN)/coverage report --include="$$room/*" --fail-under=95 || exit 1; done

# FUZZ times as many cases as the tests have: 20 is more than 10,000.
fuzz: $(READY)
	@echo 'fuzz: random plans, records, pairs, parameters, learners and mechanisms'
	@$(BIN)/python benchmarks/robustness/fuzz.py $(or $(FUZZ),20)

# Needs mutmut, which is not locked: .venv/bin/pip install mutmut==3.8.1
mutation: $(READY)
	@echo 'mutation: small bugs in what decides a verdict, and which of them no test catches'
	@$(BIN)/python benchmarks/robustness/mutation.py

# Folders in which at most 2 % of the assigned names say nothing (`known`, `told`): all rooms of the package.
PACKAGE := audit learners mechanisms reports testing
NAMED := $(PACKAGE) $(dir $(wildcard $(addsuffix /*/__init__.py,$(PACKAGE)))) tests/support

# mypy finds the package by its name, whatever the clone's folder is called, through one link.
lint: $(READY)
	@echo 'lint: ruff, mypy and the direction of imports'
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@mkdir -p .links && ln -sfn .. .links/overclaim
	@MYPYPATH=.links $(BIN)/python -m mypy -p overclaim
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/python -m pytest -q -m lint tests/test_*.py tests/reports/test_ci_files.py
	@$(BIN)/python .ci/sizes.py
	@$(BIN)/python .ci/names.py --most 2 $(NAMED)

audit: $(READY)
	@echo 'audit: every claim of the catalogue; record and report go to out/'
	@$(BIN)/overclaim run --catalogue --out out
	@$(BIN)/python .ci/blind_spots.py out/record.json

# Other people's code, in an environment of its own: diffprivlib's models need a scikit-learn that we do not.
LIBRARIES := .venv-libraries
$(LIBRARIES)/ready: pyproject.toml benchmarks/libraries.txt
	@echo 'libraries: a virtual environment in $(LIBRARIES), with the pinned libraries'
	@$(or $(PYTHON),python3) -m venv $(LIBRARIES)
	@$(LIBRARIES)/bin/python -m pip install --quiet --disable-pip-version-check -r benchmarks/libraries.txt -e '.[figures]'
	@touch $@

libraries: $(LIBRARIES)/ready
	@echo 'libraries: the tutorials that use them'
	@$(LIBRARIES)/bin/python -m pytest -q tests/test_docs.py -k tutorial-
	@echo 'libraries: claims from a configuration, and trainings, where dp_accounting, jax_privacy and Opacus are installed'
	@$(LIBRARIES)/bin/python -m pytest -q tests/mechanisms/test_dp_sgd.py tests/statistics/test_trainings.py -k 'gaussian or poisson or accountant or library'
	@echo 'libraries: faults reproduced without overclaim'
	@$(LIBRARIES)/bin/python -m pytest -q tests/reports/test_disclosure.py
	@echo 'libraries: what other libraries claim; record and report go to out/libraries/'
	@$(LIBRARIES)/bin/overclaim run --libraries --out out/libraries

# Those that need older versions than these, each group in an environment of its own; all other entries are skipped there.
.venv-libraries-%/ready: pyproject.toml benchmarks/libraries-%.txt
	@echo 'libraries-$*: a virtual environment in $(@D), with the pinned libraries'
	@$(or $(PYTHON),python3) -m venv $(@D)
	@$(@D)/bin/python -m pip install --quiet --disable-pip-version-check -r benchmarks/libraries-$*.txt -e '.[figures]'
	@for alone in $(wildcard benchmarks/libraries-$*-alone.txt); do \
	    $(@D)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -r "$$alone" || exit 1; \
	done
	@touch $@

libraries-smartnoise libraries-dpmm: libraries-%: .venv-libraries-%/ready
	@echo '$@: faults reproduced without overclaim'
	@for file in examples/reproductions/$**.py; do .venv-$@/bin/python -W ignore "$$file" || exit 1; done
	@echo '$@: what these libraries claim; record and report go to out/$@/'
	@.venv-$@/bin/overclaim run --libraries --out out/$@

# What CI audits of other people's code: a few claims, of the libraries that the development environment has.
libraries-few: $(READY)
	@echo 'libraries-few: some claims of other libraries; record and report go to out/libraries-few/'
	@$(BIN)/overclaim run .ci/libraries.toml --no-blind-spots --out out/libraries-few

# SECTION=learners measures one again. Not without make: glibc reads what is exported above when a process starts.
bench: $(READY)
	@echo 'bench: speed and tightness'
	@$(BIN)/python benchmarks/run.py $(SECTION)

# Half an hour of CPU for all entries; what benchmarks/results/regret.json has already is kept (--again: measured anew).
regret: $(READY)
	@echo 'regret: the catalogue at long horizons, and what searches find'
	@$(BIN)/python benchmarks/catalogue/regret.py

# What `make audit` does not cover; golden-write is for a change of records that is wanted. Read its differences.
golden golden-write: $(READY)
	@echo '$@: mechanisms, early stopping, other measures, inputs and sequences, against benchmarks/golden/record.json'
	@$(BIN)/python benchmarks/golden/golden.py $(if $(filter %-write,$@),--write)

# tests/test_docs.py compares.
docs: $(READY) $(SITE)/ready
	@echo 'docs: what the documented commands and the notebook print now, and the licences of what is locked'
	@$(BIN)/python docs/dependencies.py
	@$(BIN)/python docs/commands.py
	@$(SITE)/bin/python docs/notebook.py

# In an environment of its own, with what docs/requirements.lock pins: mkdocs, and what runs a notebook.
$(SITE)/ready: pyproject.toml requirements.lock docs/requirements.lock
	@echo 'site: a virtual environment in $(SITE), with the locked dependencies'
	@$(or $(PYTHON),python3) -m venv $(SITE)
	@$(SITE)/bin/python -m pip install --quiet --disable-pip-version-check --no-compile --require-hashes -r docs/requirements.lock
	@$(SITE)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

# --strict: a page that no list of links names, and a link or an anchor that is not there, end it.
# The register shows what `make audit` has found; without a record that comes first.
out/record.json:
	@$(MAKE) --no-print-directory audit

site: $(SITE)/ready out/record.json
	@echo 'site: the tutorial notebook, the pages in out/site/, and the register in out/site/register/'
	@$(SITE)/bin/python -m pytest -q -n 0 -m slow tests/reports/test_notebook.py
	@NO_MKDOCS_2_WARNING=1 $(SITE)/bin/python -m mkdocs build --strict --quiet
	@$(BIN)/overclaim register out/record.json --out out/site/register

lowest newest: $(READY)
	@echo '$@: overclaim on the $@ versions that pyproject.toml allows'
	@$(BIN)/python .ci/versions.py $@

lock: $(READY)
	@echo 'lock: newest versions and their hashes into requirements.lock'
	@$(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-strip-extras \
	    --custom-compile-command 'make lock' --extra dev pyproject.toml -o requirements.lock
	@$(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-strip-extras \
	    --custom-compile-command 'make lock' --extra docs --extra figures -c requirements.lock pyproject.toml -o docs/requirements.lock

# What the release workflow uploads: sdist and wheel in dist/, and the README's commands from the installed wheel.
release-check: $(READY)
	@echo 'release-check: sdist and wheel, checked by twine, and README from the wheel'
	@$(BIN)/python .ci/release.py

clean:
	@echo 'clean: everything that make and the tools have written'
	@rm -rf .venv .venv-libraries* .venv-site .links out build dist overclaim.egg-info .pytest_cache .hypothesis .coverage .mypy_cache .ruff_cache .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
