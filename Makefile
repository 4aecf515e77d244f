# make check is what a change must pass; .ci/run runs the tests again on a new machine, with a real broker.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := check

BIN := .cache/bin
GOLANGCI_VERSION := v2.15.0
GOLANGCI := $(BIN)/golangci-lint
DEADCODE_VERSION := v0.52.0
DEADCODE := $(BIN)/deadcode
CONFIGS = $(shell git ls-files ':(glob)**/plumbline.yaml' 'examples/config/*.yaml' ':!deploy/grafana' | sort -u)
FUZZTIME := 30s

.PHONY: plumbline plumbline-train generate generated picture portable check fmt vet lint deadcode race tidy configs test test-long integration integrations faults bench bench-peers bench-quality bench-train bench-e2e bench-latency bench-guard external-trainer detection-bench bench-go bench-stream recovery soak join-memory key-memory example-memory train-memory fuzz fuzz-messages rules-test vuln ptx ptx-check ptxas ptx-mutants cuda-fake trainer-chaos screenshots kafka-start kafka-stop clean

# The program, and the same program with the gorgonia backend of training beside the others.
plumbline:
	go build -trimpath -o bin/plumbline ./cmd/plumbline

plumbline-train:
	go build -trimpath -tags gorgonia -o bin/plumbline-train ./cmd/plumbline

check: fmt vet lint race tidy configs

fmt:
	@bad=$$(git ls-files -co --exclude-standard '*.go' | xargs -r gofmt -l); \
	if [[ -n "$$bad" ]]; then echo "not gofmt-ed:"; echo "$$bad"; exit 1; fi

vet:
	go vet ./...
	go vet -tags integration ./internal/integration/... ./web/...

# Built from source at one version, so that everybody has the same findings.
$(GOLANGCI)-$(GOLANGCI_VERSION):
	GOBIN=$(CURDIR)/$(BIN) go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	mv $(GOLANGCI) $@

lint: $(GOLANGCI)-$(GOLANGCI_VERSION) deadcode
	$< run ./...

$(DEADCODE)-$(DEADCODE_VERSION):
	GOBIN=$(CURDIR)/$(BIN) go install golang.org/x/tools/cmd/deadcode@$(DEADCODE_VERSION)
	mv $(DEADCODE) $@

# Functions that no command, example or benchmark reaches; a workspace joins the two modules.
deadcode: $(DEADCODE)-$(DEADCODE_VERSION)
	@printf '%s\n' 'go 1.26.0' 'use $(CURDIR)' 'use $(CURDIR)/bench' >.cache/go.work; \
	dead=$$(GOFLAGS= GOWORK=$(CURDIR)/.cache/go.work $< -filter github.com/plumbline/plumbline ./cmd/... ./examples/... ./bench/...); \
	if [[ -n "$$dead" ]]; then echo "nothing calls:"; echo "$$dead"; exit 1; fi

race:
	go test -race -timeout 60m ./...

tidy:
	go mod tidy -diff

configs:
	@for f in $(CONFIGS); do echo "config check $$f"; go run ./cmd/plumbline config check -c "$$f"; done

# The assembly from its generators, a module of their own.
ASM = go -C internal/asmgen run
generate:
	$(ASM) ./row -out ../../calib/kernel/rows_amd64.s -stubs ../../calib/kernel/stubs_amd64.go -pkg kernel
	$(ASM) ./neon -out ../../calib/kernel/rows_arm64.s -stubs ../../calib/kernel/stubs_arm64.go
	$(ASM) ./fixed -out ../../calib/kernel/fixedpoint/fixed_amd64.s -stubs ../../calib/kernel/fixedpoint/stubs_amd64.go -pkg fixedpoint
	$(ASM) ./gemm -out ../../calib/calibrator/internal/gemm/tile_amd64.s -stubs ../../calib/calibrator/internal/gemm/stubs_amd64.go -pkg gemm
	$(ASM) ./vexp -out ../../internal/vexp/exp_amd64.s -stubs ../../internal/vexp/stubs_amd64.go -pkg vexp

# What is committed is what the generators make.
generated: generate
	git diff --exit-code --stat -- calib internal/vexp

# The picture of README.md: the page of the demo as it runs. Needs Chromium.
picture:
	PLUMBLINE_PICTURE=$(CURDIR)/docs/img/dashboard.png go test -tags integration -count=1 -v -run '^TestPictureOfDemo$$' ./web/

# Without vector paths, and for other processors: golden hashes in the tests say that the bits are the same. Debian:
# apt-get install qemu-user-static.
ARM64 := qemu-aarch64-static
PLAIN := loong64:qemu-loongarch64-static ppc64le:qemu-ppc64le-static riscv64:qemu-riscv64-static s390x:qemu-s390x-static

portable:
	go test -tags purego ./calib/kernel/... ./calib/acc
	GOARCH=arm64 go vet -trimpath ./... # as a release is compiled, which finds it in the cache
	@if command -v $(ARM64) >/dev/null; then \
		GOARCH=arm64 go test -exec $(ARM64) -run "Bits" ./calib/kernel && \
		GOARCH=arm64 go test -exec $(ARM64) -short -run "Bits|Portable" ./calib/acc && \
		for a in $(PLAIN); do \
			GOARCH=$${a%:*} go test -exec $${a#*:} -run "Bits" ./calib/kernel || exit 1; \
		done; \
	else echo "no $(ARM64): bits of other processors are not compared"; fi

test:
	go test ./...

# The same tests with more repetitions: more seeds, denser crashes (internal/testsize).
test-long:
	PLUMBLINE_LONG=1 go test -timeout 60m ./...

# Needs Java 17 and Maven, or PLUMBLINE_KAFKA=host:port of a broker that may be used.
integration:
	go test -tags integration -count=1 -v -parallel 4 -timeout 30m ./internal/integration/... ./web/...

# Follows the pages of docs/integrations, which install up to 600 MB each: INTEGRATIONS=spark,flink for some of them.
INTEGRATIONS := all

integrations:
	PLUMBLINE_INTEGRATIONS=$(INTEGRATIONS) \
		go test -tags integration -count=1 -v -timeout 2h -run '^TestIntegrations$$' ./internal/integration/

# Pictures of the page: as it is, and with the banners of rows that are lost.
screenshots:
	mkdir -p .cache/screenshots
	PLUMBLINE_SCREENSHOTS=$(CURDIR)/.cache/screenshots go test -tags integration -count=1 \
		-run 'TestScreenshots|TestTroubles$$' ./web ./internal/integration

# Three brokers and three processes under real faults, 5 M rows; FAULTS=short is 200 thousand. The suite starts brokers
# of its own, which it kills, so the other tests' broker is named but not started. FAULTS_RUN=TestHostile is what an
# attacker, a faulty producer or a lost directory does, on one broker, one at a time.
FAULTS := full
FAULTS_RUN := TestFaults

faults:
	PLUMBLINE_FAULTS=$(FAULTS) $(if $(filter TestFaults%,$(FAULTS_RUN)),PLUMBLINE_KAFKA=127.0.0.1:1) \
		go test -tags integration -count=1 -v -parallel 1 -timeout 4h -run '^$(FAULTS_RUN)$$' ./internal/integration/

# The package beside its Python peers, in one table; PLUMBLINE_DOCS=1 rewrites bench/results/peers.md.
# SECTIONS="3 4" runs some of them. See bench/README.md.
SECTIONS :=
BENCH_VENV := .cache/bench-venv

bench: bench-peers
	$(BENCH_VENV)/bin/python -B -W ignore bench/run.py $(SECTIONS)

bench-peers: $(BENCH_VENV)/.ready

# One mark file, made last: a half-made environment is made again.
$(BENCH_VENV)/.ready: bench/requirements.txt bench/cpu_torch.py
	rm -rf $(BENCH_VENV)
	python3 -m venv $(BENCH_VENV)
	$(BENCH_VENV)/bin/pip install -q --no-deps -r bench/requirements.txt
	$(BENCH_VENV)/bin/python -B bench/cpu_torch.py
	touch $@

# Go benchmarks are a module of their own, bench; they run in this directory.
benchmark = go -C bench build -o ../$(BIN)/bench-$(1) ./$(1) && $(BIN)/bench-$(1)

# Every method of calibration on the shared real logits, 20 minutes; PLUMBLINE_DOCS=1 rewrites
# bench/results/quality.md. `make bench-quality QUALITY=-resume` goes on with a run that was stopped.
bench-quality:
	$(call benchmark,quality) $(QUALITY)

# Refits on two sets of streams of real logits, one that the method was tuned on and one held out: a quarter of an hour of two
# cores, less where .cache/bench/refit has the other policies; PLUMBLINE_DOCS=1 rewrites bench/results/refit.md.
bench-refit:
	$(call benchmark,refit)

# Fine-tuning: every recipe on drifted and clean features, five seeds, 4,000 trials in three quarters of an hour of two
# cores, and the speed beside PyTorch. Trials that are there are kept (.cache/bench/train; TRAIN=-fresh forgets them);
# PLUMBLINE_DOCS=1 rewrites bench/results/train.md and train-speed.md.
TRAIN :=
TRAIN_OUT := .cache/bench/train
# One set of tables alone: auto (drifting streams), methods (beside unknown rows), a minute each.
TRAIN_SET :=

ifeq ($(TRAIN_SET),)
bench-train: bench-peers
	$(call benchmark,train) -stage trials -out $(TRAIN_OUT) $(TRAIN)
	go -C bench build -o ../$(TRAIN_OUT)/speed ./train/speed
	$(BENCH_VENV)/bin/python -B bench/train/speed.py $(TRAIN_OUT)/speed
	$(call benchmark,train) -stage report -out $(TRAIN_OUT)
	$(call benchmark,train) -set auto
	$(call benchmark,train) -set methods
else
bench-train:
	$(call benchmark,train) -set $(TRAIN_SET)
endif

# Processor time of the whole path, beside bare consumers and Python on the same topics of a broker of its own. Varies each
# of classes, labels, keys and message sizes from one point: the best part of an hour; PLUMBLINE_DOCS=1 rewrites
# bench/results/e2e.md. E2E="-set short" is minutes, "-set full" every combination; see -help.
E2E :=
E2E_VENV := .cache/e2e-venv
E2E_PORT := 19592
KAFKA_TOOLS := org.apache.kafka:kafka-tools:4.1.0
e2e_broker = KAFKA_PORT=$(E2E_PORT) KAFKA_DIR=$(CURDIR)/.cache/e2e-kafka deploy/kafka/kafka.sh

bench-e2e: plumbline $(E2E_VENV)/.ready .cache/kafka-tools/.ready
	$(e2e_broker) start
	trap '$(e2e_broker) stop' EXIT; $(call benchmark,e2e) -kafka 127.0.0.1:$(E2E_PORT) $(E2E)

$(E2E_VENV)/.ready: bench/e2e/requirements.txt
	rm -rf $(E2E_VENV)
	python3 -m venv $(E2E_VENV)
	$(E2E_VENV)/bin/pip install -q -r $<
	touch $@

.cache/kafka-tools/.ready: Makefile
	mvn -q -B -ntp dependency:copy -Dartifact=$(KAFKA_TOOLS) -DoutputDirectory=$(CURDIR)/.cache/kafka-tools
	touch $@

# Latency from append to calibrated output, snapshot and alarm at half of the highest rate, and what refits and readers of
# page and history do to it: 6 minutes; PLUMBLINE_DOCS=1 rewrites bench/results/latency.md. State and broker are in
# LATENCY_DIR: a disk that others use would be what is measured.
LATENCY_SETS := quiet refits
LATENCY_DIR := /dev/shm/plumbline-latency
latency_broker = KAFKA_PORT=$(E2E_PORT) KAFKA_DIR=$(LATENCY_DIR)/kafka deploy/kafka/kafka.sh

bench-latency: plumbline
	mkdir -p $(LATENCY_DIR)
	$(latency_broker) start
	trap '$(latency_broker) stop; rm -rf $(LATENCY_DIR)' EXIT; \
		go -C bench build -o ../$(BIN)/bench-e2e ./e2e; \
		for set in $(LATENCY_SETS); do $(BIN)/bench-e2e -latency $$set -kafka 127.0.0.1:$(E2E_PORT) -dir $(LATENCY_DIR); done

# The reference external trainer, PyTorch on the CPU, in place of the recipes.
external-trainer: bench-peers
	go test -count=1 -run '^TestExternalTrainer$$' -v ./cmd/plumbline

# Alarms on streams of real confidences: false alarms, delays, late labels, beside river's detectors on the same streams, in one
# run that goes on where it was stopped (bench/detect/README.md). The result replaces bench/results/detection.md. Half an
# hour on two idle cores. A try of minutes that leaves that file alone:
# make detection-bench DETECTION_OUT=/tmp/try DETECTION="-runs 20 -delay-runs 20 -calm-peer-runs 20 -peer-runs 5" DETECTION_RIVER="--runs 1 --seconds 60" DETECTION_DOCS=
DETECTION := -runs 1000 -delay-runs 200 -calm-peer-runs 200 -peer-runs 100
DETECTION_RIVER := --runs 3
DETECTION_OUT := .cache/detection
DETECTION_DOCS := bench/results/detection.md
DETECTION_VENV := .cache/detect-venv

detection-bench: $(DETECTION_OUT)/frozen.json $(DETECTION_OUT)/cbpe.json
	$(call benchmark,detect) -stage ours -out $(DETECTION_OUT) $(DETECTION)
	$(call benchmark,detect) -stage peers -out $(DETECTION_OUT) $(DETECTION)
	$(call benchmark,detect) -stage export -out $(DETECTION_OUT)
	$(DETECTION_VENV)/bin/python -B bench/detect/peers.py $(DETECTION_OUT) $(DETECTION_RIVER)
	$(call benchmark,detect) -stage report -out $(DETECTION_OUT) -docs "$(DETECTION_DOCS)" $(DETECTION)
	$(call benchmark,detect) -stage regimes -docs "$(DETECTION_DOCS)"
	$(call benchmark,detect) -stage rules -docs "$(DETECTION_DOCS)"
	$(call benchmark,detect) -stage classes -docs "$(DETECTION_DOCS)"

# What the range of the accuracy before labels holds, under real shifts.
.PHONY: estimates-bench
estimates-bench: $(DETECTION_OUT)/frozen.json
	$(call benchmark,detect) -stage shifts -out $(DETECTION_OUT) -docs "$(DETECTION_DOCS)"

$(DETECTION_OUT)/%.json: bench/detect/%.py $(DETECTION_VENV)/.ready
	mkdir -p $(DETECTION_OUT)
	$(DETECTION_VENV)/bin/python -B $< ../shared/data $(DETECTION_OUT)

$(DETECTION_VENV)/.ready: bench/requirements-detect.txt
	rm -rf $(DETECTION_VENV)
	python3 -m venv $(DETECTION_VENV)
	$(DETECTION_VENV)/bin/pip install -q -r bench/requirements-detect.txt
	touch $@

# Every Go benchmark of the hot packages.
bench-go:
	go test -run '^$$' -bench . -benchmem ./calib/... ./arrowio/... ./pipeline/...

# Benchmarks of the kernels, the join, decode and a shard, of two commits in turns: fails with a table where this tree is slower
# than BASE beyond noise. 40 s of processor time. GUARD="-only join -rounds 10"; see -help.
BASE := HEAD~1
GUARD :=

bench-guard:
	$(call benchmark,guard) -base $(BASE) $(GUARD)

# Throughput of the whole path from a real broker; rewrites bench/results/throughput.md.
bench-stream:
	PLUMBLINE_BENCH=1 PLUMBLINE_DOCS=1 go test -tags integration -count=1 -v -timeout 30m -run '^TestThroughput$$' ./internal/integration/

# Time from kill -9 to the first row and to caught up, with a state of 1,000 keys of K = 100; rewrites bench/results/recovery.md.
recovery:
	PLUMBLINE_RECOVERY=1 PLUMBLINE_DOCS=1 go test -tags integration -count=1 -v -timeout 30m -run '^TestRecovery$$' ./internal/integration/

# Memory, goroutines and lag at a steady rate of rows a second and through a ten-fold burst in the middle;
# PLUMBLINE_DOCS=1 rewrites bench/results/soak.md and the graph. A run of 4 minutes shows the burst; from 15 on, growth
# in the steady stretches is judged too.
SOAK_MINUTES := 30
SOAK_RATE := 1000

soak:
	PLUMBLINE_SOAK_MINUTES=$(SOAK_MINUTES) PLUMBLINE_SOAK_RATE=$(SOAK_RATE) \
		go test -tags integration -count=1 -v -timeout 2h -run '^TestSoak$$' ./internal/integration/

# 10 M waiting predictions in under 1 GiB of resident memory: a minute, 1.2 GB of disk.
join-memory:
	PLUMBLINE_BIG=1 go test -count=1 -run '^TestTenMillionWait$$' -v ./operators/join

# Memory of 1,000 keys of a model task beside the formula of docs/operations.md: the best part of an hour.
key-memory:
	PLUMBLINE_BIG=1 go test -count=1 -timeout 3h -run '^TestMemoryOfKeys$$' -v ./operators/model

# The example of docs/operations.md, Sizing, as it runs: a quarter of an hour of its rates in minutes.
example-memory:
	PLUMBLINE_MINUTES=15 go test -count=1 -timeout 1h -run '^TestWorkedExample$$' -v ./operators/model

# Training on 1 M rows of 2,048 float16 features in under 6 GiB of resident memory: minutes, 4.3 GB of disk in TMPDIR.
train-memory:
	PLUMBLINE_BIG=1 go test -count=1 -timeout 2h -run '^TestTrainMemory$$' -v ./cmd/plumbline

# Every fuzz target of the module for FUZZTIME each.
fuzz:
	@for pkg in $$(go list ./...); do \
		for target in $$(go test -list '^Fuzz' "$$pkg" | grep '^Fuzz' || true); do \
			echo "$$pkg $$target"; go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) "$$pkg"; \
		done; \
	done

# Hostile messages: ten million mutated with their structure in mind, then Go's coverage-guided fuzzing of the decoder. An hour
# and a half on two cores; `go test ./arrowio` has the first part in a short form.
MUTATIONS := 10000000
FUZZ_EXECS := 1000000x

fuzz-messages:
	go test -count=1 -v -timeout 4h -run '^TestMutatedMessages$$' ./arrowio -args -mutations $(MUTATIONS) -mutation-seed 1
	for target in FuzzStructured FuzzDecode; do \
		go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZ_EXECS) -fuzzminimizetime 10x -timeout 4h ./arrowio; \
	done

# The alerting rules and the tests of them; skips, saying so, where there is no promtool and no package of it.
rules-test:
	@deploy/prometheus/promtool.sh check rules deploy/prometheus/rules.yml || [[ $$? == 77 ]]
	@deploy/prometheus/promtool.sh test rules deploy/prometheus/rules_test.yml deploy/prometheus/rules_hours_test.yml || [[ $$? == 77 ]]

# Known vulnerabilities that the code reaches. VULNDB=file:///DIR is a copy of the database where its host cannot be reached;
# without either it says so and passes.
GOVULNCHECK_VERSION := v1.1.4
VULNDB :=

vuln:
	@set +e; out=$$(go run golang.org/x/vuln/cmd/govulncheck@$(GOVULNCHECK_VERSION) $(if $(VULNDB),-db $(VULNDB)) ./... 2>&1); code=$$?; echo "$$out"; \
	if [[ $$code == 1 && $$out == *"fetching vulnerabilities"* ]]; then \
		echo "NOT CHECKED: the vulnerability database cannot be reached from here; run make vuln where it can, or with VULNDB=file:///DIR"; exit 0; \
	fi; exit $$code

# The kernels that the driver compiles, from their source; Debian: apt-get install --no-install-recommends clang-16. Another
# version of clang makes other text.
PTX_CLANG := clang-16
PTX_DIR := trainer/backend/cuda/kernels
PTX_FLAGS := -x cuda --cuda-device-only -nocudainc -nocudalib --cuda-gpu-arch=sm_75 -std=c++20 -O3 -Wall -Wextra -Werror

ptx:
	$(PTX_CLANG) $(PTX_FLAGS) -S -o $(PTX_DIR)/kernels.ptx $(PTX_DIR)/kernels.cu

# What is committed is what the source makes, byte for byte.
ptx-check:
	mkdir -p .cache
	$(PTX_CLANG) $(PTX_FLAGS) -S -o .cache/kernels.ptx $(PTX_DIR)/kernels.cu
	cmp .cache/kernels.ptx $(PTX_DIR)/kernels.ptx

# Registers and spills of the kernels on every architecture, by NVIDIA's assembler from PyPI (40 MB, once).
# PLUMBLINE_DOCS=1 rewrites the table; else it must be as it is.
ptxas:
	mkdir -p .cache
	trainer/backend/cuda/ptxas.sh .cache >.cache/train-ptxas.md
	$(if $(PLUMBLINE_DOCS),cp .cache/train-ptxas.md bench/results/,cmp .cache/train-ptxas.md bench/results/train-ptxas.md)

# The cuda backend's whole path without a device: its tests on a stand-in for libcuda and cuBLAS that runs the committed PTX,
# translated to C++, and checks every access to memory. One of MUTANTS changes of an instruction is tried too.
CUDA_TEST :=
MUTANTS := 97
FAKECUDA := trainer/backend/cuda/testdata/fakecuda/fakecuda.cpp
CUDA_FAKE := PLUMBLINE_LIBCUDA=$(CURDIR)/.cache/libfakecuda.so PLUMBLINE_LIBCUBLAS=$(CURDIR)/.cache/libfakecuda.so CGO_ENABLED=0 \
	go test -count=1 -timeout 30m

.cache/libfakecuda.so: $(PTX_DIR)/kernels.ptx $(wildcard trainer/backend/cuda/ptx/*.go trainer/backend/cuda/testdata/fakecuda/*)
	mkdir -p .cache
	go run ./trainer/backend/cuda/ptx $(PTX_DIR)/kernels.ptx >.cache/ptx.inc
	g++ -std=c++20 -O2 -march=native -ffp-contract=off -Wall -Wextra -Werror -fPIC -shared -DPTX_INCLUDE='"$(CURDIR)/.cache/ptx.inc"' -o $@ $(FAKECUDA)

cuda-fake: .cache/libfakecuda.so
	$(CUDA_FAKE) $(CUDA_TEST) ./trainer/backend/cuda -args -mutants $(MUTANTS)

# Every fma, setp, bar, ld and st of the PTX changed, moved or removed, one at a time: how many the tests notice.
# PLUMBLINE_DOCS=1 rewrites the table.
ptx-mutants: .cache/libfakecuda.so
	$(CUDA_FAKE) -timeout 2h -v -run '^TestMutants$$' ./trainer/backend/cuda -args -mutants 1 \
		-mutant-table $(CURDIR)/$(if $(PLUMBLINE_DOCS),bench/results,.cache)/train-mutants.md

# Faults at trainers on a real broker, one after the other: kill, full disk, damaged checkpoint, head of zeros, cancel.
CHAOS := 50

trainer-chaos:
	PLUMBLINE_CHAOS=$(CHAOS) go test -tags integration -count=1 -v -timeout 1h -run '^TestTrainerChaos$$' ./internal/integration

kafka-start:
	deploy/kafka/kafka.sh start

kafka-stop:
	deploy/kafka/kafka.sh stop

include release.mk deploy.mk

clean:
	rm -rf .cache plumbline state
