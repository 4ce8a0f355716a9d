# Two commands do everything: `make run` and `make test`. `make` alone says what there is.

PYTHON ?= python3
PORT ?= 8501
BIN := .venv/bin

.DEFAULT_GOAL := help
.PHONY: help run test lint types needs catalogues readme docs bench soak constraints audit hashes clean

help: ## what there is
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: .venv/run.stamp ## the dashboard on http://127.0.0.1:8501 (PORT=... for another port)
	@echo "obs starts on http://127.0.0.1:$(PORT) (Ctrl-C ends it)"
	@$(BIN)/streamlit run app.py --server.address 127.0.0.1 --server.port $(PORT) --server.headless true

test: needs lint ## everything that must hold: lint, types, architecture, tests with a real Prometheus and a real browser
	$(BIN)/pytest --ignore tests/browser -n auto --dist loadfile
	$(BIN)/pytest tests/browser -n 2 --dist loadfile || $(BIN)/pytest tests/browser --last-failed --last-failed-no-failures none

lint: .venv/dev.stamp ## ruff, mypy and import-linter
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

needs: ## the programs that the tests start: installs them on Debian and Ubuntu as root, elsewhere says what is missing
	@tools/needs

catalogues: .venv/dev.stamp ## finds every sentence, updates the catalogues, says what is left to translate
	$(BIN)/python tools/catalogues.py

readme: .venv/dev.stamp ## writes the settings and the output of the command line into the README
	$(BIN)/python tools/readme.py

docs: .venv/dev.stamp ## writes the tables of docs/diagnosis.md from the rules
	$(BIN)/python tools/diagnosis_doc.py

bench: .venv/dev.stamp ## measures what a page costs with 50 replicas and a day, and writes docs/performance.md (the fleet is made once, in minutes)
	$(BIN)/python tools/bench.py build/bench
	$(BIN)/python tools/bench_numbers.py build/bench

soak: .venv/dev.stamp ## five viewers of live pages for half an hour, with an outage in the middle (MINUTES=... for less): what may not grow, does not
	$(BIN)/python tools/soak.py --minutes $(or $(MINUTES),30)

constraints: .venv/dev.stamp ## writes constraints.txt from what is installed
	@{ head -n 1 constraints.txt; $(BIN)/pip list --format=freeze --exclude obs --exclude pip --exclude setuptools; } > constraints.new
	@mv constraints.new constraints.txt

hashes: .venv/run.stamp ## writes requirements-hashed.txt: what runs, with the hashes of its wheels (takes minutes)
	$(BIN)/python tools/hashes.py

audit: .venv/run.stamp ## known vulnerabilities of what runs, by pip-audit; where it cannot reach its data it says so and fails
	@$(PYTHON) -m venv build/audit && build/audit/bin/pip install --quiet --disable-pip-version-check pip-audit
	@build/audit/bin/pip-audit --strict --disable-pip --no-deps -s osv -r constraints.txt 2>build/audit/said || { tail -n 3 build/audit/said; \
	    echo "Either a package has a known vulnerability (it stands above), or pip-audit could not reach api.osv.dev: then nothing is known."; exit 1; }

clean: ## removes what the other targets built
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis

# A changed requirement builds the environment anew, so that nothing stays in it that is no longer asked for.
.venv/run.stamp: requirements.txt constraints.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	    || { echo "obs needs Python 3.11 or newer, and $(PYTHON) is older or missing; name another: make PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -m venv --clear .venv || { echo "Python cannot build an environment; on Debian and Ubuntu: apt-get install python3-venv"; exit 1; }
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps -e .
	@touch $@

.venv/dev.stamp: .venv/run.stamp requirements-dev.txt
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	@touch $@
