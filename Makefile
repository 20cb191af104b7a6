# Every command that a newcomer or the CI needs. `make` lists them.
# Rust by rustup may be new in this shell, and Debian's users have no /sbin on their PATH.
export PATH := $(PATH):$(HOME)/.cargo/bin:/usr/sbin:/sbin
# What captures needs privileges; what builds does not.
ROOT := $(if $(filter 0,$(shell id -u)),,sudo)
PREFIX ?= /usr/local
TARGET := $(or $(CARGO_TARGET_DIR),target)
# Cargo runs libbpf's Makefile, which would install there, too.
CARGO := env -u DESTDIR -u PREFIX -u MAKEFLAGS cargo

.PHONY: help setup build install uninstall demo test test-all check bench deb test-deb test-kernels test-s3 test-kafka test-decoders test-engines test-spark versitygw faults soak loom miri mutants fuzz clean
.DEFAULT_GOAL := help

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 16

setup: ## install what building and running needs, if anything is missing
	@scripts/setup

build: setup ## target/release/weir, libweir_pcap.so for programs that use libpcap, and weir-export
	@$(CARGO) build --release --package weir-cli --package weir-pcap --package weir-export

demo: build ## capture real traffic in a private network (root, by sudo if need be)
	@$(ROOT) $(TARGET)/release/weir demo

test: ## every test; as root those on private networks too
	@scripts/setup test
	@scripts/test

check: ## formatting, lints, features of the library, documentation, licences
	@scripts/setup check
	@scripts/check

bench: build ## measure capturing, filtering, forwarding, reading and writing against the limits and other programs (root)
	@scripts/setup bench
	@$(CARGO) build --release --package weir-bench
	@mkdir -p out
	@$(ROOT) $(TARGET)/release/weir-bench run --json out/bench.json --html out/bench.html \
		capture trials host filter queues steer forward read compress libpcap look

install: build ## program, libpcap, manual pages and completions below PREFIX (/usr/local), in DESTDIR if set
	@$(if $(DESTDIR),,$(ROOT)) packaging/install $(TARGET)/release/weir "$(DESTDIR)$(PREFIX)"

uninstall: ## remove what make install has installed
	@$(if $(DESTDIR),,$(ROOT)) packaging/install --remove "$(DESTDIR)$(PREFIX)"

deb: build ## out/weir_VERSION_ARCHITECTURE.deb
	@scripts/setup deb
	@packaging/build-deb $(TARGET)/release/weir out

test-deb: deb ## install it into a bare Debian 12, use it there, and remove it (root; Debian's archive)
	@$(ROOT) packaging/test-deb out/weir_*.deb

test-kernels: ## the essential tests in virtual machines with Debian's 6.1, 6.12 and newest kernel; makes docs/kernels.md (root)
	@scripts/setup test kernels
	@scripts/test-kernels; status=$$?; cp out/kernels/table.md docs/kernels.md; exit $$status

test-all: ## every test with all of its material, faults at every place, other kernels, Miri, ten minutes of fuzzing; takes hours (root)
	@scripts/setup test fuzz kernels
	@WEIR_SHARE=all scripts/test
	@$(MAKE) --no-print-directory faults miri test-s3 test-kafka test-decoders test-engines test-spark test-kernels
	@FUZZ_SECONDS=100 scripts/fuzz

VERSITYGW := $(abspath $(TARGET))/tools/versitygw
versitygw:
	@GOBIN=$(dir $(VERSITYGW)) go install github.com/versity/versitygw/cmd/versitygw@v1.8.0

test-s3: versitygw ## weir ship to an S3 store of somebody else, versitygw (Go builds it)
	@VERSITYGW=$(VERSITYGW) cargo nextest run --ignore-default-filter --package weir-export

ENGINES := $(abspath $(TARGET))/tools/engines
define install_engines
@python3 -m venv $(ENGINES)
@$(ENGINES)/bin/pip install --quiet $(1)
endef
# weir-export is what `weir ship` starts.
ASK = VERSITYGW=$(VERSITYGW) WEIR_ENGINES=$(ENGINES)/bin/python cargo nextest run --ignore-default-filter --package weir-cli --package weir-export --test read --test s3

test-engines: versitygw ## weir sql in ClickHouse (chDB) and DataFusion, which pip installs (python3-venv); DuckDB judges, as in `make test`
	@scripts/setup test
	$(call install_engines,chdb==4.4.0 datafusion==55.0.0 pyarrow)
	@$(ASK) -E 'test(/^sql::engines::(clickhouse|datafusion)/)'

test-spark: ## the same in Spark with two workers, which pip installs (400 MB); needs Java 17 (openjdk-17-jre-headless)
	@scripts/setup test
	$(call install_engines,pyspark==4.3.0)
	@$(ASK) -E 'test(/^sql::engines::spark/)'

test-kafka: ## weir flows to a broker of Kafka itself, which Maven fetches
	@scripts/setup test kafka
	@mvn -q -B -f crates/weir-cli/tests/brokers/pom.xml dependency:copy-dependencies \
	  -DincludeScope=runtime -DoutputDirectory=$(abspath $(TARGET))/tools/kafka
	@$(CARGO) build --package weir-export
	@KAFKA=$(abspath $(TARGET))/tools/kafka cargo nextest run --ignore-default-filter --package weir-cli -E 'binary(brokers)'

test-decoders: ## exported flows with a decoder of somebody else, goflow2 (Go builds it)
	@GOBIN=$(abspath $(TARGET))/tools go install github.com/netsampler/goflow2/v2/cmd/goflow2@v2.2.6
	@GOFLOW2=$(abspath $(TARGET))/tools/goflow2 cargo nextest run --ignore-default-filter --package weir-flows --test decoders

faults: ## each system call fails at each place, and a thousand kill -9; takes long (root)
	@scripts/setup test
	@WEIR_REQUIRE_ROOT=1 WEIR_FAULTS=all WEIR_KILLS=1000 cargo nextest run --profile all --package weir-cli --test faults

SOAK ?= 1h
soak: ## capture at full rate for SOAK (1h) while everything around it changes; nothing may grow, and the account must close (root)
	@scripts/setup test
	@WEIR_REQUIRE_ROOT=1 WEIR_SOAK=$(SOAK) cargo nextest run --profile all --package weir-cli --no-capture \
	  -E 'test(root_a_capture_stays_as_it_is)'

loom: setup ## every interleaving of the code on shared memory
	@RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=$(TARGET)/loom CARGO_PROFILE_RELEASE_LTO=off \
	  cargo test --package weir-ring --package weir-sys --release --lib -- loom

miri: setup ## the same code under Miri (needs a nightly toolchain with it)
	@if cargo +nightly miri --version >/dev/null 2>&1; then \
	  MIRIFLAGS=-Zmiri-disable-isolation PROPTEST_CASES=4 CARGO_TARGET_DIR=$(TARGET)/miri \
	  cargo +nightly miri test --package weir-ring --lib; \
	else \
	  echo "miri: skipped, not there: rustup toolchain install nightly --component miri,rust-src"; \
	fi

mutants: RUST := $(addprefix --package weir-,ring filter native savefile traffic packet parse dissect render service)
mutants: ## change single lines of the C and Rust code, MUTANTS (50) of each: would the tests notice? takes hours (root)
	@scripts/setup test
	@mkdir -p out
	@status=0; scripts/mutants $(or $(MUTANTS),50) || status=$$?; \
	if cargo mutants --version >/dev/null 2>&1; then \
	  left=$$(cargo mutants --list --iterate --output out $(RUST)) || exit; \
	  left=$$(printf '%s\n' "$$left" | wc -l); \
	  cargo mutants --output out --iterate --sharding round-robin \
	    --shard 0/$$((1 + left / $(or $(patsubst all,1000000,$(MUTANTS)),50))) $(RUST) || status=$$?; \
	else \
	  echo "mutants: Rust skipped, not there: cargo install cargo-mutants --locked"; \
	fi; exit $$status

fuzz: ## feed damaged files and odd expressions to everything that reads them, FUZZ_SECONDS each (20)
	@scripts/setup fuzz
	@scripts/fuzz

clean: ## remove what was built
	@cargo clean
