# Everything that is run more than once. Needs Go, git and make; no root.

SHELL := /bin/bash
.DEFAULT_GOAL := help

# The race detector needs cgo, and cgo a C compiler.
RACE := $(if $(shell command -v gcc || command -v clang),-race)
# The race detector would only make these eight times slower: they have no goroutines, or
# those of the agent, which its own tests race.
PURE := ./agent/decide ./test/simulate/...
# What no test may skip for want of. With root, containerd, buildah, dnsmasq, Prometheus and npm: controlplane,kubelet,image,netns,prometheus,release,grafana
REQUIRE ?= controlplane
# The Kubernetes release to run on, such as 1.36.3, of those in test/controlplane;
# not set: that of its go.mod.
ifdef K8S
export TAINTLET_K8S := $(K8S)
endif
# How the agent is compiled: small, as in the Dockerfile, which has the reasons.
LEAN := -tags=nethttpomithttp2 -gcflags=all=-l -gcflags=std= -gcflags=github.com/taintlet/taintlet/...=
TOOL := go tool -modfile=$(CURDIR)/test/tools/go.mod

.PHONY: help
help: ## show this list
	@grep -E '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

.PHONY: build
build: ## build bin/taintlet for hosts (static) and bin/kubectl-taintlet for operators
	@CGO_ENABLED=0 go build -trimpath $(LEAN) -ldflags='-s -w' -o bin/taintlet ./cmd/taintlet
	@CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o bin/kubectl-taintlet ./cmd/kubectl-taintlet

.PHONY: platforms
platforms: ## compile kubectl-taintlet for Linux, macOS and Windows
	@for platform in linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64; do \
		echo $$platform; CGO_ENABLED=0 GOOS=$${platform%/*} GOARCH=$${platform#*/} go build -trimpath -o /dev/null ./cmd/kubectl-taintlet || exit 1; \
	done

.PHONY: try
try: build ## take one sample of this host; needs no cluster and no root
	@bin/taintlet once || [ $$? -eq 3 ] # 3: some condition is not OK

.PHONY: demo
demo: ## taint and recover this host as a Node of a real control plane (20 s, after a first build of 8 minutes); KEEP=1 leaves it running
	@go run ./test/demo

.PHONY: simulate-network
simulate-network: ## simulate which of 1,000 nodes the network's verdict taints, into test/simulate/network/confusion.txt (some minutes)
	go run ./test/simulate/network > test/simulate/network/confusion.txt

# Shows each package as it ends, what failed in full, and writes what go test says into a file.
GOTEST := $(TOOL) gotestsum --format pkgname --hide-summary skipped --jsonfile

.PHONY: test
test: controlplane ## run every test that needs no root, on a real control plane, and list the skipped tests with the reason; K8S=1.36.3: on that release
	@mkdir -p bin
	@$(GOTEST) bin/test-pure.json -- -timeout 20m $(PURE)
	@TAINTLET_REQUIRE=$(REQUIRE) $(GOTEST) bin/test-rest.json -- $(RACE) -timeout 40m $$(go list ./... | grep -vxF "$$(go list $(PURE))")
	@go run ./test/skipped bin/test-pure.json bin/test-rest.json

OLDEST := $(patsubst test/controlplane/%.mod,%,$(firstword $(sort $(wildcard test/controlplane/1.*.mod))))

.PHONY: older
older: export TAINTLET_K8S = $(or $(K8S),$(OLDEST))
older: ## run cluster, deploy and integration on the oldest Kubernetes of test/controlplane, or on K8S=1.36.3, and list the tests that it cannot run (20 minutes; needs no root)
	@mkdir -p bin
	@go run ./test/cluster/build
	@TAINTLET_REQUIRE=controlplane $(GOTEST) bin/test-older.json -- -count 1 -timeout 40m ./test/cluster ./test/deploy ./test/integration
	@go run ./test/skipped bin/test-older.json

.PHONY: helm3
helm3: controlplane ## test the chart and the commands of deploy/README.md with Helm 3 (2 minutes)
	TAINTLET_HELM=3 TAINTLET_REQUIRE=controlplane go test -count 1 ./test/deploy -run 'TestManifestsAreGenerated|TestLint|TestBadValuesAreRefused|TestCommandsOfTheREADME'

# What quick leaves out: the suites of test, and tests of more than a second.
SUITES := bed|cluster|culprit|demo|deploy|hosts|kubelet|measure|monitoring|neighbours|network|process|release|security
SLOW := TestAnOrdinaryDay|TestShort$$|TestForgedSuspicion|TestStartsAndOverloads|TestTheRecordedHourIsQuiet|TestWrongThreshold|TestReplaysBecomeCriticalAlike|TestRestartDelaysByAtMostOneWait|TestDiskUnderRealPressure|TestManySlicesAreReadLessOften|TestHTTP2IsSpoken|TestSignOfLifeShortensThePause|TestHostileObjectsInEveryVerb

.PHONY: quick
quick: ## run the tests that need neither root nor a control plane, with a thirtieth of the decider's random courses, and list the tests left out (a minute)
	@mkdir -p bin
	@$(GOTEST) bin/test-quick.json -- -short -p 4 -skip '^($(SLOW))' $$(go list ./... | grep -vE '/test/($(SUITES))(/|$$)')
	@go run ./test/skipped bin/test-quick.json
	@echo 'left out: test/($(SUITES))' | tr '|' ' '
	@echo 'left out: $(SLOW)' | tr '|' ' '

.PHONY: controlplane
controlplane: ## build the Kubernetes components into the user's cache (some minutes the first time)
	@go run ./test/cluster/build

FUZZ_FOR ?= 60s
FUZZ_IN ?= agent cmd probes taints

.PHONY: fuzz
fuzz: ## run every fuzz test below FUZZ_IN='agent cmd probes taints' for FUZZ_FOR=60s; a failing input is kept as a seed beside its test, and named at the end
	@failed=; for test in $$(grep -rl '^func Fuzz' --include=*_test.go $(FUZZ_IN)); do \
		for name in $$(sed -n 's/^func \(Fuzz[A-Za-z]*\)(.*/\1/p' $$test); do \
			echo "=== $$name in $$(dirname $$test)"; \
			go test ./$$(dirname $$test) -run '^$$' -fuzz "^$$name$$" -fuzztime $(FUZZ_FOR) -fuzzminimizetime 2s || failed="$$failed $$name"; \
		done; \
	done; [ -z "$$failed" ] || { echo "failed:$$failed"; exit 1; }

DEPTH ?= 12
EXHAUST_FOR ?= 2s

.PHONY: exhaust
exhaust: ## try all sequences of up to DEPTH=12 events on the decider, from 25 states, for at least EXHAUST_FOR=2s each (40 minutes); MUTANTS=1: list the broken deciders that this detects (30 minutes)
ifdef MUTANTS
	TAINTLET_MUTANTS=$(CURDIR)/test/exhaust/mutants.txt go test ./test/exhaust -count 1 -timeout 1h -v -run TestMutants | grep --line-buffered -v '^=== '
else
	GOMAXPROCS=1 GOGC=400 GOMEMLIMIT=12GiB go test ./agent/decide -count 1 -timeout 2h -v -run '^TestExhaust$$' -exhaust-depth $(DEPTH) -exhaust-for $(EXHAUST_FOR) \
		-exhaust-results $(CURDIR)/test/exhaust/results.txt
endif

.PHONY: faults
faults: SEEDS = 1000
faults: controlplane ## kill an agent at each of its requests, and run it through SEEDS=1000 courses of random faults, from seed FIRST=1; 150 or more write test/faults/results.md (15 minutes)
	@set -o pipefail; TAINTLET_FAULT_SEEDS=$(SEEDS) TAINTLET_FAULT_FIRST=$(FIRST) TAINTLET_FAULT_RESULTS=$(CURDIR)/test/faults/results.md TAINTLET_REQUIRE=controlplane go test -count 1 -timeout 6h -v ./test/faults | grep --line-buffered -v '^ *=== '

.PHONY: attack
attack: controlplane ## attack a running agent in every way (more than 12 minutes); TAINTLET_WRITE_RELIABILITY=1 writes test/security/README.md
	@set -o pipefail; failed=; for test in TestAttacks TestStolenToken; do \
		TAINTLET_REQUIRE=controlplane TAINTLET_LONG_ATTACKS=1 go test -count 1 -timeout 40m -v -run $$test ./test/security | grep --line-buffered -v '^=== ' || failed="$$failed $$test"; \
	done; [ -z "$$failed" ] || { echo "failed:$$failed"; exit 1; }

BENCH ?=

.PHONY: bench
bench: controlplane ## measure the cost beside node_exporter and the delay beside a kubelet, into test/measure/bench/results (30 minutes; needs root); BENCH=--short to try it
	TAINTLET_BENCH='$(BENCH)' TAINTLET_REQUIRE=controlplane go test -count 1 -timeout 24h -v -run '^TestBench$$' ./test/measure/bench

.PHONY: hotpaths
hotpaths: ## run the Go benchmarks of the shipped agent into bin/hotpaths.txt, and compare them with the last results by benchstat (10 minutes; BenchmarkRound needs root)
	@mkdir -p bin
	go test -run '^$$' -bench . -benchmem -count 6 -benchtime 500ms $(LEAN) ./agent/... ./probes/... | tee bin/hotpaths.txt
	[ $$(id -u) -ne 0 ] || go test -run '^$$' -bench '^BenchmarkRound$$' -benchmem -count 6 -benchtime 500ms $(LEAN) -exec 'unshare --net --mount' ./probes/network | tee -a bin/hotpaths.txt
	$(TOOL) benchstat last=$(lastword $(sort $(wildcard test/measure/bench/results/*.txt))) now=bin/hotpaths.txt

NODES ?= 1000

.PHONY: scale
scale: controlplane ## measure the cost of NODES=1000 simulated agents to one API server, into test/measure/scale/results (an hour); SCALE='--parts incident', SCALE=--help
	TAINTLET_SCALE='--nodes $(NODES) $(SCALE)' TAINTLET_REQUIRE=controlplane go test -count 1 -timeout 24h -v -run '^TestScale$$' ./test/measure/scale

.PHONY: soak
soak: controlplane ## run an agent through a week of incidents, 720 times as fast, into test/measure/soak/results (15 minutes); SOAK=--short, SOAK='--real 1h'
	TAINTLET_REQUIRE=controlplane go test -count 1 -timeout 24h -v -run '^TestSoak$$' ./test/measure/soak -args -soak $(SOAK)

NETWORK_TABLE ?= $(CURDIR)/bin/incidents.md

.PHONY: network
network: controlplane ## test every incident of the network, with namespaces as hosts (2 hours; needs root); NETWORK_TABLE names the file for the table of test/network/README.md
	@mkdir -p $(dir $(NETWORK_TABLE)) && rm -f $(NETWORK_TABLE)
	TAINTLET_NETWORK_TABLE=$(NETWORK_TABLE) TAINTLET_REQUIRE=controlplane,netns go test -count 1 -timeout 3h -v ./test/network
	TAINTLET_LONG_ATTACKS=1 TAINTLET_REQUIRE=controlplane,netns go test -count 1 -timeout 40m -v -run TestForgedAnswers ./test/security

HOST ?=

.PHONY: hosts
hosts: controlplane ## test incidents on virtual machines with Debian's kernels, a kubelet and the DaemonSet, into test/hosts/results.md (an hour for each machine; needs root, QEMU and mmdebstrap); HOST=bookworm: on one
	TAINTLET_HOSTS_TABLE=$(CURDIR)/test/hosts/results.md TAINTLET_REQUIRE=controlplane,hosts go test -count 1 -timeout 4h -v -run 'TestIncidents/$(HOST)' ./test/hosts

SEEDS ?= 200

.PHONY: culprit
culprit: controlplane ## test which culprit a Node names, with SEEDS=200 hogs on a real kubelet with 20 pods, into test/culprit/results.md (20 minutes; needs root and containerd)
	TAINTLET_CULPRIT_SEEDS=$(SEEDS) TAINTLET_CULPRIT_RESULTS=$(CURDIR)/test/culprit/results.md TAINTLET_REQUIRE=controlplane,kubelet \
		go test -count 1 -timeout 2h -v -run TestCulprit ./test/culprit | grep --line-buffered -v '^=== '

.PHONY: neighbours
neighbours: controlplane ## test how the real descheduler, Karpenter and Cluster API react to taints and conditions of taintlet and of the kubelet (12 minutes, after a first build of some minutes)
	@set -o pipefail; TAINTLET_REQUIRE=controlplane,neighbours TAINTLET_LONG_NEIGHBOURS=1 go test -count 1 -timeout 40m -v ./test/neighbours | grep --line-buffered -v '^=== '

.PHONY: lint
lint: ## run the linters; .golangci.yml gives the reasons
	$(TOOL) golangci-lint run ./...
	go mod tidy -diff

.PHONY: vuln
vuln: ## check called code for known vulnerabilities; needs the network
	$(TOOL) govulncheck ./...

.PHONY: staleness
staleness: ## count the commits that have changed the product since each long run
	@go test ./test -count 1 -v -run '^TestFiguresNameTheirCommit$$' | grep -E ' make |names|FAIL'

.PHONY: scenarios
scenarios: ## rewrite the results in the decider's scenarios, and the golden files of reasons and messages; read the diff; ALL=1: also the recordings of real Nodes, kubectl describe and kubectl taintlet check (5 minutes; needs root)
	go test ./agent/decide -run 'TestScenarios|TestMessages' -update
	go test ./probes/network/ask -run TestResults -update
	go test ./probes/memory ./probes/disk ./probes/pid ./probes/network/verdict -run TestMessages -update
	go test ./agent ./agent/sampling -run 'TestEventTexts|TestStartsAndOverloads' -update
ifdef ALL
	TAINTLET_UPDATE_GOLDEN=1 TAINTLET_RECORD_NODES=1 TAINTLET_REQUIRE=controlplane go test -count 1 ./test/integration -run '^TestStatus$$'
	TAINTLET_UPDATE_GOLDEN=1 TAINTLET_REQUIRE=controlplane go test -count 1 ./test/deploy -run TestEveryLine
	TAINTLET_UPDATE_GOLDEN=1 TAINTLET_NETWORK_TABLE=/dev/null TAINTLET_REQUIRE=controlplane,netns go test -count 1 -timeout 20m ./test/network -run '^TestWrongThreshold$$'
endif
	go test ./cmd/kubectl-taintlet/status -run 'TestGolden|TestScreen|TestDocumentationShowsRealOutput' -update
	$(MAKE) terminal-pictures

.PHONY: command-line
command-line: ## write docs/command-line.md from the commands and their flags
	go test ./cmd/taintlet -run TestCommandLineIsDocumented -update
	go test ./cmd/kubectl-taintlet -run TestCommandLineIsDocumented -update

.PHONY: terminal-pictures
terminal-pictures: ## draw kubectl taintlet status into docs/images
	go test ./cmd/kubectl-taintlet -count 1 -run TestTerminalPictures -update

.PHONY: manifests
manifests: ## write deploy/taintlet.yaml and deploy/keep.yaml from the Helm chart, and the chart's list of bounds from the agent's
	TAINTLET_UPDATE_GOLDEN=1 go test ./test/deploy -run '^TestBoundsAreTheAgents$$'
	cp deploy/monitoring/rules.yaml deploy/helm/taintlet/rules.yaml # Helm reads no file beside the chart
	deploy/generate

IMAGE ?= taintlet/taintlet
VERSION ?= $(shell git describe --tags --always --dirty)
BUILDER ?= docker

.PHONY: image
image: export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct)
image: ## build the container image with docker, or with BUILDER=buildah; BUILDFLAGS='--platform linux/arm64' for another platform
	$(BUILDER) build --tag $(IMAGE):$(VERSION) --build-arg VERSION=$(VERSION) --build-arg REVISION=$$(git rev-parse HEAD) \
		--build-arg SOURCE_DATE_EPOCH=$$SOURCE_DATE_EPOCH --build-arg CREATED=$$(date -u -d @$$SOURCE_DATE_EPOCH +%FT%TZ) \
		$(BUILDFLAGS) .

RELEASE_IMAGE ?= ghcr.io/taintlet/taintlet

.PHONY: release
release: ## build the files of a release into bin/release-VERSION, from a clean tree; VERSION=0.1.0; the chart uses RELEASE_IMAGE=ghcr.io/taintlet/taintlet
	go run ./test/release --version=$(VERSION) --image=$(RELEASE_IMAGE) --out=bin/release-$(VERSION)

.PHONY: reproduce
reproduce: ## build the release of HEAD twice, for all platforms and with separate caches, and compare the bytes (40 minutes on two busy cores)
	TAINTLET_LONG_RELEASE=1 TAINTLET_REQUIRE=release go test -count 1 -timeout 2h -v -run TestReleaseIsReproducible ./test/release

.PHONY: workflows
workflows: ## lint the workflows of .github; needs the network
	go run github.com/rhysd/actionlint/cmd/actionlint@v1.7.7
