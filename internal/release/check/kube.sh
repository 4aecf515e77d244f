#!/usr/bin/env bash
# kube.sh: installs the chart by helm on a real kube-apiserver, with Debian's etcd behind it: defaulting, validation and
# admission are Kubernetes' own; no controller and no node is there. KUBE_APISERVER names the program; without it, it is built
# from its Go module: 6 minutes of processor time, 5 GB of disk. `make deploy-kube`; not part of deploy-check.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
version=1.33.4 tmp=$(mktemp -d)
server=${KUBE_APISERVER:-$PWD/.cache/bin/kube-apiserver-$version}
pids=()
cleanup() { for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; wait "$pid" 2>/dev/null || true; done; rm -rf "$tmp"; }
trap cleanup EXIT
fail() { echo "kube: $*" >&2; tail -n 15 "$tmp"/*.log >&2; exit 1; }

if [[ ! -x $server ]]; then
	mkdir "$tmp/build"
	(
		cd "$tmp/build"
		export GOFLAGS='-mod=mod -trimpath' CGO_ENABLED=0
		printf 'module kube\n\ngo 1.26\n\nrequire k8s.io/kubernetes v%s\n' $version >go.mod
		for m in api apiextensions-apiserver apimachinery apiserver cli-runtime client-go cloud-provider cluster-bootstrap \
			code-generator component-base component-helpers controller-manager cri-api cri-client csi-translation-lib \
			dynamic-resource-allocation endpointslice externaljwt kms kube-aggregator kube-controller-manager kube-proxy \
			kube-scheduler kubectl kubelet metrics mount-utils pod-security-admission sample-apiserver; do
			go mod edit -replace "k8s.io/$m=k8s.io/$m@v0.${version#1.}"
		done
		printf 'package kube\n\nimport _ "k8s.io/kubernetes/cmd/kube-apiserver/app"\n' >kube.go
		go mod tidy >/dev/null 2>&1
		flags="-s -w -X k8s.io/component-base/version.gitVersion=v$version -X k8s.io/component-base/version.gitMajor=1"
		go build -ldflags "$flags -X k8s.io/component-base/version.gitMinor=33" -o "$server" k8s.io/kubernetes/cmd/kube-apiserver
	)
fi

port=${PORT:-22490}
etcd --data-dir "$tmp/etcd" --listen-client-urls "http://127.0.0.1:$((port + 1))" --advertise-client-urls "http://127.0.0.1:$((port + 1))" \
	--listen-peer-urls "http://127.0.0.1:$((port + 2))" >"$tmp/etcd.log" 2>&1 &
pids+=($!)
openssl genrsa -out "$tmp/key.pem" 2048 2>/dev/null
echo 'token,admin,admin,"system:masters"' >"$tmp/tokens"
"$server" --etcd-servers "http://127.0.0.1:$((port + 1))" --secure-port "$port" --bind-address 127.0.0.1 --cert-dir "$tmp/certs" \
	--service-account-issuer https://kube --service-account-key-file "$tmp/key.pem" --service-account-signing-key-file "$tmp/key.pem" \
	--authorization-mode RBAC --token-auth-file "$tmp/tokens" --disable-admission-plugins ServiceAccount \
	--service-cluster-ip-range 10.0.0.0/24 >"$tmp/kube.log" 2>&1 &
pids+=($!)
cat >"$tmp/kubeconfig" <<-EOT
	{"apiVersion": "v1", "kind": "Config", "current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
	 "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:$port", "insecure-skip-tls-verify": true}}],
	 "users": [{"name": "u", "user": {"token": "token"}}]}
EOT
for ((i = 0; i < 200; i++)); do
	[[ $(curl -ks -H 'Authorization: Bearer token' "https://127.0.0.1:$port/readyz") == ok ]] && break
	sleep 0.5
done
((i < 200)) || fail "the API server did not come up"
api() { curl -ksS -H 'Authorization: Bearer token' -H 'Content-Type: application/json' "https://127.0.0.1:$port$1" "${@:2}"; }
# What the chart refers to of the operators is given by definitions that take everything.
crd() { # GROUP VERSION KIND PLURAL
	api /apis/apiextensions.k8s.io/v1/customresourcedefinitions -X POST -o /dev/null -d '{"apiVersion": "apiextensions.k8s.io/v1",
		"kind": "CustomResourceDefinition", "metadata": {"name": "'"$4.$1"'"}, "spec": {"group": "'"$1"'", "scope": "Namespaced",
		"names": {"plural": "'"$4"'", "kind": "'"$3"'"}, "versions": [{"name": "'"$2"'", "served": true, "storage": true,
		"schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}}'
}
crd monitoring.coreos.com v1 ServiceMonitor servicemonitors
crd monitoring.coreos.com v1 PrometheusRule prometheusrules
crd keda.sh v1alpha1 ScaledObject scaledobjects
crd kafka.strimzi.io v1beta2 KafkaTopic kafkatopics
crd kafka.strimzi.io v1beta2 KafkaUser kafkausers
sleep 2

# The strictest of Kubernetes' own rules for pods holds in the namespace.
api /api/v1/namespaces -X POST -o /dev/null -d '{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "strict", "labels":
	{"pod-security.kubernetes.io/enforce": "restricted", "pod-security.kubernetes.io/warn": "restricted"}}}'
helm() { "$HELM" --kubeconfig "$tmp/kubeconfig" -n strict "$@"; }
chart=deploy/helm/plumbline
helm install small $chart >"$tmp/helm.log" 2>&1 || fail "helm install"
helm install all $chart -f $chart/ci/full-values.yaml >>"$tmp/helm.log" 2>&1 || fail "helm install with everything"
helm upgrade all $chart -f $chart/ci/full-values.yaml --set shards.tag=v0.0.9,shards.memoryMiB=4096 >>"$tmp/helm.log" 2>&1 || fail "helm upgrade"
helm rollback all 1 >>"$tmp/helm.log" 2>&1 || fail "helm rollback"
! grep -i 'would violate' "$tmp/helm.log" || fail "pods are not restricted"

# A pod of each template, as its controller would make it: admitted only if it is restricted.
for kind in statefulsets/all-shards statefulsets/all-models statefulsets/small-shards deployments/all-trainer; do
	api "/apis/apps/v1/namespaces/strict/$kind" | python3 -c '
import json, sys
t = json.load(sys.stdin)["spec"]["template"]
t["spec"]["volumes"].append({"name": "work", "emptyDir": {}}) if not any(v["name"] == "work" for v in t["spec"]["volumes"]) else None
print(json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": sys.argv[1], "labels": t["metadata"]["labels"]}, "spec": t["spec"]}))' \
		"${kind#*/}-0" >"$tmp/pod.json"
	answer=$(api /api/v1/namespaces/strict/pods -X POST -d @"$tmp/pod.json")
	grep -q '"kind": *"Pod"' <<<"$answer" || fail "$kind: $answer"
done
echo "kube: chart installed, upgraded and rolled back on kube-apiserver $version; its pods were admitted as restricted"
