# What is deployed, and its checks: `make deploy-check` runs them all. Tools are built from Go modules at one version each
# into .cache/bin; they are none of the program's dependencies.
NFPM_VERSION := v2.41.3
AMTOOL_VERSION := v0.34.2
HELM_VERSION := v3.22.0
VERSITYGW_VERSION := v1.8.0
CHECKS := internal/release/check
ARCH := $(shell go env GOARCH)
DEB := $(DIST)/plumbline_$(VERSION:v%=%)_$(ARCH).deb

.PHONY: dashboards dashboards-pictures deb image deploy-check deploy-kube deploy-tools

# $(call tool,NAME,PACKAGE,VERSION)
define tool
$(BIN)/$(1)-$(3):
	GOBIN=$(CURDIR)/$(BIN) GOFLAGS=-trimpath CGO_ENABLED=0 go install -ldflags '-s -w' $(2)@$(3)
	mv $(BIN)/$(1) $$@
endef
$(eval $(call tool,nfpm,github.com/goreleaser/nfpm/v2/cmd/nfpm,$(NFPM_VERSION)))
$(eval $(call tool,amtool,github.com/prometheus/alertmanager/cmd/amtool,$(AMTOOL_VERSION)))
$(eval $(call tool,helm,helm.sh/helm/v3/cmd/helm,$(HELM_VERSION)))
$(eval $(call tool,versitygw,github.com/versity/versitygw/cmd/versitygw,$(VERSITYGW_VERSION)))

deploy-tools: $(BIN)/nfpm-$(NFPM_VERSION) $(BIN)/amtool-$(AMTOOL_VERSION) $(BIN)/helm-$(HELM_VERSION) \
	$(BIN)/versitygw-$(VERSITYGW_VERSION)

# deploy/grafana from the table of panels.
dashboards:
	go -C internal/release run ./dashboards $(CURDIR)/deploy/grafana

# dist/pictures: the panels' queries on the Prometheus of the compose file's services, plotted.
dashboards-pictures: release-binaries $(BIN)/versitygw-$(VERSITYGW_VERSION)
	mkdir -p $(DIST)/pictures
	PLUMBLINE_PICTURES=$(CURDIR)/$(DIST)/pictures VERSITYGW=$(CURDIR)/$(BIN)/versitygw-$(VERSITYGW_VERSION) \
		go -C internal/release test -count=1 -v -run '^TestStack$$' ./check

# The Debian package of this machine's processor, from the files of `make release`.
deb: $(BIN)/nfpm-$(NFPM_VERSION)
	ARCH=$(ARCH) VERSION=$(VERSION:v%=%) SOURCE_DATE_EPOCH=$(SOURCE_DATE_EPOCH) \
		$< package -f deploy/systemd/nfpm.yaml -p deb -t $(DEB)

# The images as OCI layouts, dist/image and dist/image-gpu, without a daemon.
image:
	$(CHECKS)/image.sh $(VERSION)

# The chart on a real kube-apiserver; KUBE_APISERVER names one that is built already. Needs etcd.
deploy-kube: $(BIN)/helm-$(HELM_VERSION)
	HELM=$(CURDIR)/$< $(CHECKS)/kube.sh

# Everything above and below deploy/, as far as it can be had: executed where a registry has the server, else validated.
deploy-check: deploy-tools
	BIN=$(CURDIR)/$(BIN) HELM=$(CURDIR)/$(BIN)/helm-$(HELM_VERSION) AMTOOL=$(CURDIR)/$(BIN)/amtool-$(AMTOOL_VERSION) \
		VERSITYGW=$(CURDIR)/$(BIN)/versitygw-$(VERSITYGW_VERSION) VERSION=$(VERSION) DEB=$(DEB) $(CHECKS)/all.sh
