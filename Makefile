# What people and CI run. `make test` installs what it needs; see .ci/run for a bare machine.

.DEFAULT_GOAL := help
.PHONY: help run test test-rust fmt lint openapi check bench bench-peers quality

help: ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

run: ## build and start a server on 127.0.0.1:8080
	cargo run --release --locked -- serve

test: fmt lint test-rust openapi ## everything that must pass before a commit

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

bench: ## checks at a fixed rate against 100,000 documents
	cargo build --release --locked --workspace
	./target/release/hapax-loadtest --binary ./target/release/hapax

# gaoya gets every instruction of this machine, hapax is measured as it ships. The Python peers may be missing: what
# cannot be installed is left out, and the output says so.
bench-peers: ## signing against gaoya, datasketch and rensa, as ratios within one run
	RUSTFLAGS='-C target-cpu=native' cargo build --release --locked \
		--manifest-path crates/peers/Cargo.toml --target-dir target/peers
	-python3 -m venv target/tools-peers
	-target/tools-peers/bin/python -m pip install --quiet --disable-pip-version-check datasketch==2.0.0
	-target/tools-peers/bin/python -m pip install --quiet --disable-pip-version-check rensa==0.5.0 numpy
	HAPAX_PEERS_RUST='$(CURDIR)/target/peers/release/hapax-peers' \
	HAPAX_PEERS_PYTHON='$(CURDIR)/target/tools-peers/bin/python:$(CURDIR)/crates/peers/peers.py' \
		cargo bench --locked -p hapax-core --bench peers

quality: ## recall and precision on every corpus there is
	cargo test --release --locked --test it quality -- --include-ignored --nocapture
