#!/usr/bin/env bash
# all.sh: every check of deploy/ and of releases, and what was not had. FAST=1 leaves the second build of the program out.
# Debian's packages are installed where absent and possible.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
here=internal/release/check
step() { printf '\n-- %s (%d s)\n' "$*" "$SECONDS"; }
# did STATE ARTEFACT HOW: a line of the table at the end. Executed: it ran with real parts; validated: its format's own tool
# takes it; written: neither.
table=()
did() { table+=("$(printf '%-10s %-28s %s' "$1" "$2" "$3")"); }

step "what Debian has"
missing=()
for pair in buildah:buildah umoci:umoci bwrap:bubblewrap prometheus:prometheus prometheus-alertmanager:prometheus-alertmanager \
	systemd-analyze:systemd file:file systemd-nspawn:systemd-container zsh:zsh fish:fish man:man-db java:openjdk-17-jre-headless rclone:rclone; do
	command -v "${pair%%:*}" >/dev/null || missing+=("${pair#*:}")
done
if ((${#missing[@]})) && command -v apt-get >/dev/null && [[ $(id -u) == 0 ]]; then
	apt-get update -qq && RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

step "release: three systems, SBOM, manual pages, completions"
make -s release >/dev/null
$here/release.sh "$VERSION"
did executed "release, linux/$(go env GOARCH)" "run; go install; ${FAST:+no }second build compared"
did written "release, other systems" "built, in archives with sums and SBOMs; not run"
step "images"
$here/image.sh "$VERSION"
did executed "image" "content, health check, demo on a read-only root"
did executed "image-gpu" "content, trains on a stand-in for CUDA's driver, if made; no GPU here"
step "package and units"
make -s deb >/dev/null
VERSION=$VERSION $here/deb.sh "$DEB"
did executed "Debian package" "install, upgrade, remove, purge by dpkg"
step "chart, compose file, dashboards, and the stack that runs with their files"
"$HELM" lint --strict deploy/helm/plumbline -f deploy/helm/plumbline/ci/full-values.yaml >/dev/null 2>&1 ||
	"$HELM" lint --strict deploy/helm/plumbline -f deploy/helm/plumbline/ci/full-values.yaml
if [[ ! -d deploy/kafka/target/lib ]]; then mvn -q -B -ntp -f deploy/kafka/pom.xml dependency:copy-dependencies </dev/null; fi
log=$(mktemp) boot=$(mktemp)
KAFKA_PORT=22192 $here/systemd.sh "$DEB" >"$boot" 2>&1 & # most of both is waiting
booted=$!
mkdir -p dist/pictures
$here/crds.sh .cache/crds
CRDS=$PWD/.cache/crds HELM=$HELM PLUMBLINE_PICTURES=$PWD/dist/pictures GOFLAGS=-trimpath go -C internal/release test -count=1 -v ./... >"$log" 2>&1 || { cat "$log"; wait $booted || true; exit 1; }
grep -E '^(ok|---)|SKIP|_test.go.*(after|queries|S3)' "$log"
tests() { grep -q -- "--- PASS: $1 " "$log" && echo "$2" || echo "not run"; }
did "$(tests TestChart validated)" "Helm chart" "helm lint; Kubernetes' types; definitions of KEDA, Strimzi, Prometheus; make deploy-kube installs it"
did "$(tests TestComposeFile validated)" "compose file" "compose-go; no Docker"
did "$(tests TestStack executed)" "services of the compose file" "Kafka, Prometheus, Alertmanager, S3 server, plumbline, producer; not Grafana"
did "$(tests TestStack executed)" "backup to S3 and back" "refused, no bucket, server away; restored and read on"
did "$(tests TestStack validated)" "dashboards" "every query has data on Prometheus; pictures plotted, not by Grafana"
rm "$log"
rc=0
wait $booted || rc=$?
cat "$boot"
rm "$boot"
case $rc in
0) did executed "systemd unit" "a real systemd in a container: start, kill, upgrade, bad configuration, removal" ;;
3) did validated "systemd unit" "systemd-analyze verify and security; no container can be had here" ;;
*) exit 1 ;;
esac
did validated "systemd unit of the trainer" "systemd-analyze verify and security"
step "drills, on a real broker"
$here/drills.sh
did executed "drills" "broker-loss, disk-full, lost-volume"
step "a new machine, from the archive to the first number"
$here/newmachine.sh "dist/plumbline_${VERSION#v}_linux_$(go env GOARCH).tar.gz"
did executed "a new machine" "from the archive to the first number, without systemd"
step "Prometheus and Alertmanager"
promtool check config --syntax-only deploy/prometheus/prometheus.yml
# Processor time: what else runs on the machine does not count.
log=$(mktemp)
spent=$(TIMEFORMAT=%U; { time promtool test rules deploy/prometheus/rules_test.yml deploy/prometheus/rules_hours_test.yml >"$log" 2>&1; } 2>&1) || { cat "$log"; exit 1; }
rm "$log"
echo "promtool test rules: $spent s of a processor"
((${spent%.*} <= 20)) || { echo "the most is 20"; exit 1; }
"$AMTOOL" check-config deploy/alertmanager/alertmanager.yml
"$AMTOOL" check-config deploy/compose/alertmanager.yml >/dev/null
route() { "$AMTOOL" config routes test --config.file deploy/alertmanager/alertmanager.yml "$@"; }
[[ $(route alertname=PlumblineDown severity=critical) == pagerduty ]] || { echo "PlumblineDown goes to $(route alertname=PlumblineDown severity=critical)"; exit 1; }
[[ $(route alertname=calibration-raw model=m severity=critical) == teams ]] || { echo "an alarm goes to $(route alertname=calibration-raw model=m severity=critical)"; exit 1; }
[[ $(route alertname=PlumblineLag severity=warning) == slack ]] || { echo "PlumblineLag goes elsewhere"; exit 1; }
did executed "Prometheus rules" "promtool test rules"
did validated "Alertmanager example" "amtool check-config, routes; no account of Slack, PagerDuty, Teams"
step "what each artefact is"
printf '%s\n' "${table[@]}"
