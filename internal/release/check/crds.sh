#!/usr/bin/env bash
# crds.sh DIRECTORY: the definitions of what the chart makes for operators, by the operators themselves: KEDA's and
# Prometheus' from their Go modules, Strimzi's by its generator from Maven.
set -euo pipefail
mkdir -p "$1"
out=$(realpath "$1")
cd "$(dirname "${BASH_SOURCE[0]}")"
module() { (cd / && go mod download -json "$1") | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p'; }
keda=$(module github.com/kedacore/keda/v2@v2.21.0)
prometheus=$(module github.com/prometheus-operator/prometheus-operator@v0.85.0)
cp "$keda"/config/crd/bases/keda.sh_scaledobjects.yaml \
	"$prometheus"/example/prometheus-operator-crd/monitoring.coreos.com_{servicemonitors,prometheusrules}.yaml "$out"
chmod u+w "$out"/*
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mvn -q -B -ntp -f strimzi/pom.xml dependency:copy-dependencies -DoutputDirectory="$work" </dev/null
for kind in topic.KafkaTopic user.KafkaUser; do
	java -cp "$work/*" io.strimzi.crdgenerator.CrdGenerator --yaml --target-kube 1.25+ --crd-api-version v1 \
		"io.strimzi.api.kafka.model.$kind=$out/kafka.strimzi.io_${kind#*.}.yaml" 2>/dev/null
done
