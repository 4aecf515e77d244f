# Releases. The version is the newest of CHANGELOG.md; a tag of the same name names it for `go install`.
VERSION := v$(shell sed -n 's/^\#\# \([0-9][0-9.]*\).*/\1/p' CHANGELOG.md | head -1)
DIST := dist
TARGETS := linux/amd64 linux/arm64 darwin/arm64
# A static program cannot load libraries: on Linux plumbline-gpu is the same one that can, for OpenBLAS and CUDA; it needs glibc.
RELEASE_FLAGS := -trimpath -ldflags '-s -w -buildid= -X github.com/plumbline/plumbline/internal/buildinfo.version=$(VERSION)'
# Files in archives have the time of the commit.
SOURCE_DATE_EPOCH := $(shell git log -1 --format=%ct)
TAR := tar --sort=name --owner=0 --group=0 --numeric-owner --mtime=@$(SOURCE_DATE_EPOCH) --format=gnu
RELEASE_TOOL := $(CURDIR)/$(BIN)/release

.PHONY: release release-tool release-binaries release-texts release-check

# Archives of the three systems with their SBOMs, and the sums of all.
release: release-binaries release-texts release-tool
	for target in $(TARGETS); do \
		name=plumbline_$(VERSION:v%=%)_$${target/\//_}; dir=$(DIST)/$$name; \
		mkdir -p $$dir/prometheus $$dir/systemd; \
		cp $(DIST)/bin/$$target/* LICENSE README.md CHANGELOG.md $$dir/; \
		cp -r $(DIST)/man $(DIST)/completions $$dir/; \
		cp deploy/prometheus/rules.yml $$dir/prometheus/; \
		if [[ -d deploy/systemd ]]; then cp deploy/systemd/*.service $$dir/systemd/; fi; \
		$(RELEASE_TOOL) sbom $$dir/plumbline >$(DIST)/$$name.cdx.json; \
		$(TAR) -C $(DIST) -cf - $$name | gzip -9n >$(DIST)/$$name.tar.gz; \
		rm -r $$dir; \
	done
	cd $(DIST) && sha256sum *.tar.gz *.cdx.json >checksums.txt && cat checksums.txt

release-binaries:
	rm -rf $(DIST)
	for target in $(TARGETS); do \
		export CGO_ENABLED=0 GOOS=$${target%/*} GOARCH=$${target#*/}; \
		go build -tags static $(RELEASE_FLAGS) -o $(DIST)/bin/$$target/plumbline ./cmd/plumbline; \
		[[ $$GOOS != linux ]] || go build $(RELEASE_FLAGS) -o $(DIST)/bin/$$target/plumbline-gpu ./cmd/plumbline; \
	done

# Manual pages from the reference pages, completions from the program of this machine.
release-texts: release-binaries release-tool
	mkdir -p $(DIST)/man $(DIST)/completions
	$(RELEASE_TOOL) man plumbline 1 $(VERSION) <docs/cli.md >$(DIST)/man/plumbline.1
	$(RELEASE_TOOL) man plumbline.yaml 5 $(VERSION) <docs/config.md >$(DIST)/man/plumbline.yaml.5
	for shell in bash zsh fish powershell; do $(DIST)/bin/$(shell go env GOOS)/$(shell go env GOARCH)/plumbline completion $$shell >$(DIST)/completions/plumbline.$$shell; done

release-tool:
	GOFLAGS=-trimpath go -C internal/release build -o $(RELEASE_TOOL) .

# What a release must be, on this machine's system: the same bytes from another folder and an empty build cache, static,
# stripped, installable by version.
release-check: release-tool
	internal/release/check/release.sh $(VERSION)
