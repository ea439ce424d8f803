# Every target works from a fresh clone, twice, as root or not, beside whatever runs on the standard ports.

GOLANGCI_LINT_VERSION := v2.15.0
SQLC_VERSION          := v1.31.1
KUSTOMIZE_VERSION     := v5.8.1
GOVULNCHECK_VERSION   := v1.9.0
KAFKA_VERSIONS        ?= 2.8.2 3.9.1 4.3.1

GO            ?= go
GOLANGCI_LINT ?= $(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION)
KUSTOMIZE     ?= $(GO) run sigs.k8s.io/kustomize/kustomize/v5@$(KUSTOMIZE_VERSION)
SQLC          ?= $(GO) run github.com/sqlc-dev/sqlc/cmd/sqlc@$(SQLC_VERSION)
GOVULNCHECK   ?= $(GO) run golang.org/x/vuln/cmd/govulncheck@$(GOVULNCHECK_VERSION)

VERSION  := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
COMMIT   := $(shell git rev-parse HEAD 2>/dev/null || echo unknown)
LDFLAGS  := -s -w -X main.version=$(VERSION) -X main.commit=$(COMMIT)
IMAGE    ?= msgexchange:$(VERSION)
FUZZTIME  ?= 60s
BENCHTIME ?= 10s

# The race detector needs a C compiler; without one the tests still run, and say so.
TESTFLAGS = -shuffle=on -timeout 15m $(if $(filter 1,$(shell $(GO) env CGO_ENABLED)),-race)

# gin would say at each test that it could be quieter.
export GIN_MODE = release

# What sqlc reads and writes, to see without sqlc whether db/pgq is fresh.
SQLC_FILES = $(sort $(wildcard db/sqlc.yaml db/queries/*.sql migrations/*.sql db/pgq/*.go))

.DEFAULT_GOAL := help

.PHONY: help
help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## run the whole system on this machine, nothing needed; DURATION=20s stops it
	@deploy/setup/servers.sh postgres
	$(GO) run -tags demo -ldflags '$(LDFLAGS)' . demo $(if $(DURATION),--duration $(DURATION))

.PHONY: test
test: setup lint verify ## lint, then every test against real PostgreSQL and MariaDB, started privately
	$(GO) run ./db/dbtest/serve -- $(GO) test $(TESTFLAGS) -tags demo,faults ./...
	$(GO) test $(TESTFLAGS) ./deploy/cli/...
ifeq ($(CI),true)
	@test -n '$(filter -race,$(TESTFLAGS))' || { echo 'test: the race detector did not run: no C compiler' >&2; exit 1; }
endif

.PHONY: test-unit
test-unit: ## test the core only: no servers, seconds
	$(GO) test -shuffle=on ./jobs/...

# A broker that is named keeps the topics msgx-test-* made there. Those started here are fetched by mvn and gone afterwards.
.PHONY: test-kafka
test-kafka: ## test delivery against real brokers: MSGX_TEST_KAFKA=host:port,… or each of KAFKA_VERSIONS, started privately
	@homes="$$([ -n '$(MSGX_TEST_KAFKA)' ] || deploy/setup/kafka.sh $(KAFKA_VERSIONS))" || exit 1; \
	MSGX_TEST_KAFKA='$(MSGX_TEST_KAFKA)' MSGX_TEST_KAFKA_HOMES="$$homes" \
		$(GO) test -count=1 -timeout 40m -v -tags kafka -run TestRealBroker ./workers/deliver/kafkatest

.PHONY: soak
soak: ## everything goes wrong for SOAK (5m), then every record is checked; SEED=n repeats a run
	@deploy/setup/servers.sh postgres mariadb
	$(GO) run ./deploy/soak -duration $(or $(SOAK),5m) -seed $(or $(SEED),0)

.PHONY: bench
bench: bench-core ## measure; every goal is a ratio to what the machine itself can do in the same run; BENCH=quick is short, STRICT=1 fails on a missed goal
	@deploy/setup/servers.sh postgres mariadb
	$(GO) run ./deploy/bench $(if $(filter quick,$(BENCH)),-quick) $(if $(STRICT),-strict)

.PHONY: bench-core
bench-core: ## measure decoding and deciding beside a bare pass of encoding/xml; the goal for ratio is 2
	$(GO) test -run '^$$' -bench '^BenchmarkMessage$$' -benchtime $(BENCHTIME) ./jobs/sis

.PHONY: fuzz test-fuzz
fuzz: test-fuzz
test-fuzz: ## fuzz every target of the core for FUZZTIME (60s) each; its seeds are in make test
	@for package in $$($(GO) list ./jobs/...); do \
		for target in $$($(GO) test -list '^Fuzz' $$package | grep '^Fuzz'); do \
			$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$package || exit 1; \
		done; \
	done

.PHONY: setup
setup: ## get PostgreSQL, MariaDB and promtool for the tests if they are missing
	@deploy/setup/servers.sh postgres mariadb pgbouncer promtool cc

# The manifests are linted twice: kustomize builds every overlay, and deploy/k8s reads them and the compose file strictly and
# holds them against the program's commands, keys and times.
.PHONY: lint
lint: manifests ## check style, imports, shape, Kubernetes manifests and the compose file
	$(GOLANGCI_LINT) run --allow-parallel-runners -c .ci/golangci.yml
	.ci/shape
	$(GO) test ./deploy/k8s

.PHONY: manifests
manifests: ## build the Kubernetes manifests of every overlay into bin/manifests
	@mkdir -p bin/manifests
	@for overlay in deploy/k8s/overlays/*/; do \
		$(KUSTOMIZE) build $$overlay > bin/manifests/$$(basename $$overlay).yaml || exit 1; \
	done

# Needs the network: the database of known holes is not here. Not part of test or CI.
.PHONY: vuln
vuln: ## look for known holes in what the binary uses; needs the network
	$(GOVULNCHECK) .

.PHONY: fmt
fmt: ## format
	$(GOLANGCI_LINT) fmt -c .ci/golangci.yml

.PHONY: generate
generate: ## write everything that is generated: SQL code, schema, wire catalogue, record schemas, table of keys
	@deploy/setup/servers.sh postgres
	$(GO) test ./db -run upDownUp -update
	cd db && $(SQLC) generate
	cksum $(SQLC_FILES) > db/generated.cksum
	$(GO) test ./jobs/sis -run CataloguePage -update
	$(GO) test ./jobs/outbox -run 'Schemas$$' -update
	$(GO) test ./deploy/config -run KeyTable -update
	$(GO) test ./deploy/alerts -run LogEvents -update

.PHONY: verify
verify: ## check that the SQL code is fresh, without building sqlc; the tests check the rest
	@cksum $(SQLC_FILES) | diff db/generated.cksum - || { echo 'verify: stale: run make generate' >&2; exit 1; }

.PHONY: build
build: ## build bin/msgexchange, static
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/msgexchange .

.PHONY: image
image: ## build the container image
	docker build -f deploy/docker/Dockerfile --build-arg VERSION=$(VERSION) --build-arg COMMIT=$(COMMIT) -t $(IMAGE) .

.PHONY: run
run: ## serve with the configuration of the environment; ARGS='--config FILE'
	$(GO) run -ldflags '$(LDFLAGS)' . serve $(ARGS)
