# What people and CI run. `make test` installs what it needs; see .ci/run for a bare machine.

.DEFAULT_GOAL := help
.PHONY: help run test test-rust fmt lint openapi check bench bench-stages bench-sketches bench-peers bench-index bench-boot bench-server bench-durable peers quality races chaos churn crash corruption neon miri fuzz loom docker-context

help: ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

run: ## build and start a server on 127.0.0.1:8080
	cargo run --release --locked -- serve

# In CI the slow ones too: what is unsafe, fuzzed and watched.
test: fmt lint test-rust openapi $(if $(CI),quality races chaos churn crash corruption neon miri fuzz loom docker-context) ## everything that must pass before a commit

test-rust: ## all Rust tests
	cargo test --workspace --locked

fmt: ## formatting
	cargo fmt --all --check

lint: ## clippy, warnings are errors
	cargo clippy --workspace --all-targets --locked -- -D warnings

openapi: target/tools/bin/openapi-spec-validator ## openapi.yaml is well formed
	$< openapi.yaml

target/tools/bin/openapi-spec-validator:
	python3 -m venv target/tools
	target/tools/bin/python -m pip install --quiet --disable-pip-version-check 'openapi-spec-validator>=0.7,<0.8'

check: test ## test, and licences and advisories of all dependencies
	@command -v cargo-deny >/dev/null || cargo install --locked cargo-deny
	cargo deny check

bench: bench-stages bench-sketches bench-peers bench-index bench-boot bench-server bench-durable ## all of the following: speed, always as ratios within one run

bench-stages: ## every stage of signing on every kind of text, with a table at the end
	cargo bench --locked -p hapax-core --bench stages

bench-sketches: ## bias, variance and cost of fss, classic and oph
	cargo run --release --locked -p hapax-core --example sketches

bench-boot: ## opening a collection of DOCUMENTS (5 million)
	cargo bench --locked --bench boot -- --documents $(DOCUMENTS)

bench-server: ## checks at a fixed rate against 100,000 documents
	cargo build --release --locked --workspace
	./target/release/hapax-loadtest --binary ./target/release/hapax

DURABLE_OPTIONS ?=
bench-durable: ## inserts by 64 clients, on disk and with nothing kept: at least half as fast
	cargo build --release --locked --workspace
	./target/release/hapax-loadtest durable --binary ./target/release/hapax --ratio-min 0.5 $(DURABLE_OPTIONS)

# gaoya gets every instruction of this machine, hapax is measured as it ships.
peers:
	RUSTFLAGS='-C target-cpu=native' cargo build --release --locked \
		--manifest-path crates/peers/Cargo.toml --target-dir target/peers

# The Python peers may be missing: what cannot be installed is left out, and the output says so.
bench-peers: peers ## signing against gaoya, datasketch and rensa, as ratios within one run
	-python3 -m venv target/tools-peers
	-target/tools-peers/bin/python -m pip install --quiet --disable-pip-version-check datasketch==2.0.0
	-target/tools-peers/bin/python -m pip install --quiet --disable-pip-version-check rensa==0.5.0 numpy
	HAPAX_PEERS_RUST='$(CURDIR)/target/peers/release/hapax-peers' \
	HAPAX_PEERS_PYTHON='$(CURDIR)/target/tools-peers/bin/python:$(CURDIR)/crates/peers/peers.py' \
		cargo bench --locked -p hapax-core --bench peers

DOCUMENTS ?= 5000000
INDEX_OPTIONS ?=
bench-index: peers ## the index of DOCUMENTS (5000000) against gaoya's and a plain map: memory, inserts and checks
	HAPAX_PEERS_INDEX='$(CURDIR)/target/peers/release/hapax-peers-index' \
		cargo bench --locked --bench index -- --documents $(DOCUMENTS) $(INDEX_OPTIONS)

quality: ## recall and precision on every corpus there is
	cargo test --release --locked --test it quality -- --include-ignored --nocapture

races: ## a million races of insertions, replacements, deletes and expiry, replayed in their order
	cargo test --release --locked --test it races -- --include-ignored --nocapture

# By hand: make chaos CHAOS_SECONDS=600 CHAOS_SEEDS=10
CHAOS_SECONDS ?= 20
CHAOS_SEEDS ?= 3
chaos: ## everything at once for CHAOS_SECONDS (20) with each of CHAOS_SEEDS (3); then memory is what the next life makes of the file
	HAPAX_CHAOS_SECONDS=$(CHAOS_SECONDS) HAPAX_CHAOS_SEEDS=$(CHAOS_SEEDS) \
		cargo test --release --locked --test it chaos -- --nocapture

churn: ## ten rounds of deleting half of a million documents and inserting as many, by what the process takes
	cargo test --release --locked --test it churn -- --ignored --nocapture

# By hand: make crash KILLS=200
KILLS ?= 20
POWER_LOSSES ?= 10
crash: ## KILLS (20) times SIGKILL under load, POWER_LOSSES (10) with five outcomes each, every operation on the disk failing
	HAPAX_KILLS=$(KILLS) HAPAX_POWER_LOSSES=$(POWER_LOSSES) HAPAX_FAULTS=1 \
		cargo test --release --locked --test it crash:: -- --nocapture --test-threads 1

corruption: ## thousands of flipped bits, and cuts at every 512 bytes, over a stored collection
	cargo test --release --locked --lib corruption -- --include-ignored --nocapture

docker-context: ## what `docker build` runs, on the files it is given, without Docker
	.ci/docker-context

# The core's unsafe code is for the processor it runs on: another one is emulated.
neon: ## the core's tests on 64-bit ARM, emulated
	rustup target add aarch64-unknown-linux-gnu
	@command -v aarch64-linux-gnu-gcc >/dev/null && command -v qemu-aarch64 >/dev/null || \
		{ echo "install gcc-aarch64-linux-gnu, libc6-dev-arm64-cross and qemu-user" >&2; exit 1; }
	CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc \
	CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER='qemu-aarch64 -L /usr/aarch64-linux-gnu' \
		cargo test --locked -p hapax-core --target aarch64-unknown-linux-gnu --lib --test vectors --test simd

# AVX2 by hand, then what the compiler makes of plain loops for AVX-512: Miri knows processors that a machine is not.
# The index's pages of memory need none of this; the C code of dependencies is built and never called.
MIRI = cargo +nightly miri test --locked --lib --target-dir target/miri
AVX2 = +avx2,+bmi1,+bmi2,+lzcnt,+popcnt
miri: ## the unsafe code of the core and of the index under Miri
	@cargo +nightly --version >/dev/null 2>&1 || rustup toolchain install nightly --profile minimal
	rustup component add --toolchain nightly miri rust-src
	RUSTFLAGS='-C target-feature=$(AVX2)' $(MIRI) -p hapax-core -p hapax -- simd:: index::pool::
	RUSTFLAGS='-C target-feature=$(AVX2),+avx512f,+avx512bw,+avx512dq,+avx512vl' $(MIRI) -p hapax-core -- simd::

# A build of its own: every atomic of the index is a model's.
loom: ## the arena under every order of loads and stores
	RUSTFLAGS='--cfg hapax_loom' LOOM_MAX_PREEMPTIONS=3 \
		cargo test --locked --lib --target-dir target/loom -- index::loom_tests

FUZZ = target/tools/bin/cargo-fuzz
FUZZ_TARGETS = normalise tokens shingle sign
FUZZ_SECONDS ?= 30
fuzz: $(FUZZ) ## each stage against its portable form, under AddressSanitizer, FUZZ_SECONDS (30) each
	@cargo +nightly --version >/dev/null 2>&1 || rustup toolchain install nightly --profile minimal
	cd crates/hapax-core && RUSTUP_TOOLCHAIN=nightly $(CURDIR)/$(FUZZ) build --target-dir $(CURDIR)/target/fuzz
	cd crates/hapax-core && for target in $(FUZZ_TARGETS); do \
		RUSTUP_TOOLCHAIN=nightly $(CURDIR)/$(FUZZ) run --target-dir $(CURDIR)/target/fuzz $$target -- \
			-max_total_time=$(FUZZ_SECONDS) -max_len=9000 -len_control=0 -verbosity=0 -print_final_stats=1 || exit 1; \
	done

$(FUZZ):
	cargo install --locked --root target/tools cargo-fuzz --version '^0.13'
