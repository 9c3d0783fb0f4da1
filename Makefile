# Two commands do everything: `make app` opens the dashboard, `make test` runs the tests.
# Both make .venv on first use and reuse it; only Python 3.11 (or newer, to 3.13), pip and make are needed.

PYTHON ?= $(shell command -v python3.11 || command -v python3.12 || command -v python3.13 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
PORT ?= 8501

.PHONY: app test test-all test-nightly check format docs bench core lowest clean

app: $(VENV)/.app
	$(BIN)/python -m isoviz app --port $(PORT)

# One thread per test process, because several processes share the cores; also for what asks torch for all of them (the limit),
# since threads that wait for a core spin.
test: $(VENV)/.dev
	OMP_NUM_THREADS=1 OMP_THREAD_LIMIT=1 $(BIN)/python -m pytest --numprocesses=auto --maxprocesses=4 --no-loadscope-reorder

# With the rest of the slow matrices: each method on two processes and on the simulated device, tutorials, containers, Ray.
test-all: test test-nightly
test-nightly: export ISOVIZ_TESTS = nightly
test-nightly: $(VENV)/.dev
	OMP_NUM_THREADS=1 OMP_THREAD_LIMIT=1 $(BIN)/python -m pytest --numprocesses=auto --maxprocesses=4 --no-loadscope-reorder $(TESTS)

check: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m factory.reference_docs --check

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Measures the table "Which measure sees what", writes the generated parts of docs/ from the catalogues, then builds the site into site/.
docs: $(VENV)/.dev
	$(BIN)/python -m factory.record_responses
	$(BIN)/python -m factory.reference_docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

# Each prints a table and fails where its bar is missed; explore needs Chromium. The scripts that are not listed need data or a
# recorded study.
BENCHMARKS := metrics penalties run_queue training whatif explore
bench: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r benchmarks/requirements.txt
	for name in $(BENCHMARKS); do $(BIN)/python benchmarks/$$name.py || exit 1; done

# The wheel alone in an empty environment, with the packages that it asks for and no others: it measures a file.
core: $(VENV)/.dev
	rm -rf .core && $(PYTHON) -m venv .core
	$(BIN)/python -m hatchling build -t wheel -d .core
	.core/bin/python -m pip download --quiet --disable-pip-version-check --only-binary=:all: -d .core/wheels .core/*.whl
	ls -l .core/wheels
	.core/bin/python -m pip install --quiet --disable-pip-version-check --no-index --find-links .core/wheels isoviz-embeddings
	.core/bin/python -c "import numpy; numpy.save('.core/x.npy', numpy.random.default_rng(0).normal(size=(500, 16)))"
	.core/bin/isoviz measure --embeddings .core/x.npy

# The lowest versions that pyproject.toml allows, with some tests of the rooms that use them. torch and the tools of the tests are
# the pinned ones: they come after the lowest versions on the path.
LOWEST_TESTS := tests/metrics/test_scores.py tests/metrics/test_records.py tests/statistics/test_two_samples.py \
	tests/posthoc/test_whitening.py tests/tasks/test_files.py tests/models/test_adapter.py
lowest: $(VENV)/.dev
	rm -rf .lowest && $(PYTHON) -m venv .lowest
	echo "torch ; python_version < '3'" > .lowest/without-torch.txt
	$(BIN)/uv pip install --quiet --python .lowest/bin/python --resolution lowest-direct --overrides .lowest/without-torch.txt '.[train]'
	$(BIN)/python -c "import sysconfig; print(sysconfig.get_path('purelib'))" > .lowest/pinned
	cp .lowest/pinned "$$(.lowest/bin/python -c "import sysconfig; print(sysconfig.get_path('purelib'))")/pinned.pth"
	PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 OMP_NUM_THREADS=1 .lowest/bin/python -m pytest -p pytest_timeout $(LOWEST_TESTS)

clean:
	rm -rf $(VENV) .core .lowest

$(VENV)/bin/python:
	$(PYTHON) -c "import sys; v = sys.version_info; sys.exit(0 if (3, 11) <= v < (3, 14) else 'IsoViz needs Python 3.11 to 3.13, found %d.%d: run make PYTHON=/path/to/python3.11' % v[:2])"
	$(PYTHON) -m venv $(VENV)

$(VENV)/.app: requirements.txt pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	touch $@

# uv is five times as fast; pip also knows mirrors that are set up for it alone.
$(VENV)/.dev: requirements-dev.txt $(VENV)/.app
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $$(grep '^uv==' requirements-dev.txt)
	$(BIN)/uv pip install --quiet --python $(BIN)/python -r requirements-dev.txt || \
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	touch $@
