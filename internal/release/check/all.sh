#!/usr/bin/env bash
# all.sh: every check of deploy/ and of releases, and what was not had. FAST=1 leaves the second build of the program out.
# Debian's packages are installed where absent and possible.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
here=internal/release/check
step() { printf '\n-- %s (%d s)\n' "$*" "$SECONDS"; }

step "what Debian has"
missing=()
for pair in buildah:buildah umoci:umoci bwrap:bubblewrap prometheus:prometheus prometheus-alertmanager:prometheus-alertmanager \
	systemd-analyze:systemd file:file java:openjdk-17-jre-headless; do
	command -v "${pair%%:*}" >/dev/null || missing+=("${pair#*:}")
done
if ((${#missing[@]})) && command -v apt-get >/dev/null && [[ $(id -u) == 0 ]]; then
	apt-get update -qq && RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

step "release: three systems, SBOM, manual pages, completions"
make -s release >/dev/null
$here/release.sh "$VERSION"
step "image"
$here/image.sh "$VERSION"
step "package and units"
make -s deb >/dev/null
VERSION=$VERSION $here/deb.sh "$DEB"
step "chart, compose file, dashboards, and the stack that runs with their files"
"$HELM" lint --strict deploy/helm/plumbline -f deploy/helm/plumbline/ci/full-values.yaml >/dev/null 2>&1 ||
	"$HELM" lint --strict deploy/helm/plumbline -f deploy/helm/plumbline/ci/full-values.yaml
if [[ ! -d deploy/kafka/target/lib ]]; then mvn -q -B -ntp -f deploy/kafka/pom.xml dependency:copy-dependencies </dev/null; fi
log=$(mktemp)
HELM=$HELM GOFLAGS=-trimpath go -C internal/release test -count=1 -v ./... >"$log" 2>&1 || { cat "$log"; exit 1; }
grep -E '^(ok|---)|SKIP|stack_test.go.*(after|queries)' "$log"
rm "$log"
step "drills, on a real broker"
$here/drills.sh
step "Prometheus and Alertmanager"
promtool check config --syntax-only deploy/prometheus/prometheus.yml
# Processor time: what else runs on the machine does not count.
log=$(mktemp)
spent=$(TIMEFORMAT=%U; { time promtool test rules deploy/prometheus/rules_test.yml >"$log" 2>&1; } 2>&1) || { cat "$log"; exit 1; }
rm "$log"
echo "promtool test rules: $spent s of a processor"
((${spent%.*} <= 20)) || { echo "the most is 20"; exit 1; }
"$AMTOOL" check-config deploy/alertmanager/alertmanager.yml
"$AMTOOL" check-config deploy/compose/alertmanager.yml >/dev/null
route() { "$AMTOOL" config routes test --config.file deploy/alertmanager/alertmanager.yml "$@"; }
[[ $(route alertname=PlumblineDown severity=critical) == pagerduty ]] || { echo "PlumblineDown goes to $(route alertname=PlumblineDown severity=critical)"; exit 1; }
[[ $(route alertname=calibration-raw model=m severity=critical) == teams ]] || { echo "an alarm goes to $(route alertname=calibration-raw model=m severity=critical)"; exit 1; }
[[ $(route alertname=PlumblineLag severity=warning) == slack ]] || { echo "PlumblineLag goes elsewhere"; exit 1; }
step "done; not had: Grafana, MinIO and Docker's daemon; Kubernetes is make deploy-kube"
