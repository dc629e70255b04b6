# Everything runs in .venv, which these targets make themselves: Python 3.11 and make are all that is needed.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
STUDIO := .venv-label-studio
# Idle OpenMP threads sleep instead of spinning: on shared cores spinning threads slow everything tenfold.
export OMP_WAIT_POLICY := PASSIVE
# Keep compiled modules: tests start many processes, and each would compile all that it imports.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo docs test test-long test-random test-lowest test-pythons test-label-studio test-newcomer coverage release-check lint lint-js bench setup clean
help:  ## show the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 20

$(VENV)/ready: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "accuacl needs Python 3.11 or newer")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev,docs,label,onnx,skactiveml,cluster]"
	touch $@

setup: $(VENV)/ready  ## make .venv with everything installed

demo: $(VENV)/ready  ## what every strategy picks of scikit-learn's digits, then a whole run beside two with labels at random
	$(BIN)/python examples/digits.py --out out/digits.png
	$(BIN)/accuacl run --benchmark split-digits --scale cpu --strategy uncertain-coverage --memory-policy coverage --out runs/demo
	$(BIN)/accuacl run --benchmark split-digits --scale cpu --strategy uniform --memory-policy coverage --out runs/demo-chance
	$(BIN)/accuacl run --benchmark split-digits --scale cpu --strategy uniform --out runs/demo-uniform
	$(BIN)/python examples/gain.py runs/demo runs/demo-chance --paper runs/demo-uniform --picture out/digits.png

# Three tests at a time, since many wait for browsers, servers and disks: on two cores a sixth faster than two. Each has
# one thread: threads of several processes on two cores wait for each other.
PYTEST := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 3 --dist worksteal

test: lint lint-js  ## run ruff, mypy, eslint, TypeScript and all tests
	$(PYTEST)

test-long: lint  ## the same with many more random problems and kills
	ACCUACL_TESTS=long $(PYTEST)

# Tools that only these targets need are installed by them: pytest-randomly, once there, would shuffle every run.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

test-random: lint  ## run all tests in three random orders
	$(PIP) pytest-randomly
	for seed in 1 2 3; do $(PYTEST) -o addopts="-q --doctest-modules --strict-markers" --randomly-seed=$$seed || exit 1; done

test-lowest: $(VENV)/ready  ## install the oldest versions that pyproject.toml allows, without extras, and try all that this install has
	$(PIP) uv
	mkdir -p out
	$(BIN)/uv pip compile --quiet --resolution lowest-direct --python-version 3.11 pyproject.toml --output-file out/lowest.txt
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python out/lowest
	$(BIN)/uv pip install --quiet --python out/lowest/bin/python --requirements out/lowest.txt
	$(BIN)/uv pip install --quiet --python out/lowest/bin/python --no-deps .
	out/lowest/bin/python tests/lowest.py

# The pins of constraints.txt are those of one Python; others may need newer versions, so they are not used here.
test-pythons:  ## run all tests with each Python from 3.11 to 3.14 that is here, in an environment of its own
	@for version in 3.11 3.12 3.13 3.14; do \
		python=$$(command -v python$$version || uv python find --no-python-downloads $$version 2>/dev/null); \
		if [ -z "$$python" ]; then echo "Python $$version is not here; it is left out. Install it, for instance with: uv python install $$version"; continue; fi; \
		echo "Python $$version: $$python"; \
		$$python -m venv .venv-$$version && \
		.venv-$$version/bin/python -m pip install --quiet --disable-pip-version-check -e ".[dev,label,onnx,skactiveml,frames]" && \
		OMP_NUM_THREADS=1 .venv-$$version/bin/python -m pytest -n 2 --dist worksteal $(TESTS) || exit 1; \
	done

coverage: $(VENV)/ready  ## which lines the tests run: out/coverage/index.html
	$(PIP) pytest-cov
	$(PYTEST) --cov=accuacl --cov-report=html:out/coverage --cov-report=term:skip-covered

release-check: $(VENV)/ready  ## build sdist and wheel, check both, install each in a new environment and play a newcomer there
	$(PIP) build twine
	rm -rf dist
	$(BIN)/python -m build --outdir dist .
	$(BIN)/twine check --strict dist/*
	$(BIN)/python tests/newcomer.py --package dist/*.whl
	$(BIN)/python tests/newcomer.py --package dist/*.tar.gz

# Label Studio wants other versions of much, so it has an environment of its own; only torch is the same.
$(STUDIO)/ready: pyproject.toml constraints.txt
	test -x $(STUDIO)/bin/python || $(PYTHON) -m venv $(STUDIO)
	$(STUDIO)/bin/python -m pip install --quiet --disable-pip-version-check -e ".[train,labelstudio]" label-studio "$$(grep '^torch==' constraints.txt)"
	touch $@

test-label-studio: $(STUDIO)/ready  ## install a real Label Studio (1 GB), start it where it reaches nothing else, and go to it and back
	unshare --net $(if $(filter 0,$(shell id -u)),,--map-root-user) bash -c \
		'ip link set lo up && exec $(STUDIO)/bin/python tests/label_studio/round_trip.py'

test-newcomer: $(VENV)/ready  ## play a newcomer: install the wheel into a new environment, run all that README and tutorials print
	$(BIN)/python tests/newcomer.py

lint: $(VENV)/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The page's scripts are plain files; what checks them is installed here, and is no part of the package.
JS := tests/javascript
lint-js:  ## check the page's scripts with eslint and TypeScript, where npm is there
	@if command -v npm >/dev/null && npm install --prefix $(JS) --no-package-lock --no-audit --no-fund --silent; then \
		$(JS)/node_modules/.bin/eslint --max-warnings 0 --config $(JS)/eslint.config.js src/accuacl/labeling/web/static && \
		$(JS)/node_modules/.bin/tsc --project $(JS)/tsconfig.json; \
	elif [ -n "$$ACCUACL_REQUIRE_NODE" ]; then echo "eslint and TypeScript cannot be installed, and must be here"; exit 1; \
	else echo "eslint and TypeScript cannot be installed: the page's scripts are not checked"; fi

docs: $(VENV)/ready  ## build the documentation site in out/site; open out/site/index.html
	NO_MKDOCS_2_WARNING=true $(BIN)/mkdocs build --strict --quiet

bench: $(VENV)/ready  ## measure speed and memory of every strategy on this machine
	$(BIN)/python benchmarks/bench.py

clean:  ## remove .venv and caches
	rm -rf $(VENV) $(STUDIO) .pytest_cache .mypy_cache .ruff_cache .hypothesis
