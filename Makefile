PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test lint clean

$(VENV)/.installed: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --editable ".[dev]"
	touch $@

# A real search on scikit-learn's digits, from YAML to a front in the browser.
demo: $(VENV)/.installed
	@PATH="$(CURDIR)/$(BIN):$$PATH" sh examples/demo.sh

# In continuous integration (CI=true) the long fault tests and the clean installations run too.
test: $(VENV)/.installed-dev lint
	$(BIN)/python -m pytest $(if $(filter true,$(CI)),-m "not soak and not benchmark")

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/pyright

clean:
	rm -rf $(VENV) build dist *.egg-info demo.db* demo.db.artifacts
