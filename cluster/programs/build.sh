#!/usr/bin/env bash
# build.sh FOLDER: builds the programs of the laboratory with the go command from modules of the Go module proxy, as static binaries:
# kubernetes (kube-apiserver, kube-controller-manager, kube-scheduler, kubelet, kube-proxy and kubectl are links to it), etcd, helm, pause.
# Runs for up to 10 minutes of two processors with empty Go caches, and less than a minute with full ones.
set -euo pipefail
kubernetes=v1.36.3
etcd=v3.6.16
helm=v3.22.0
sources=$(dirname "$(readlink -f "$0")")
mkdir -p "$1"
out=$(readlink -f "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CGO_ENABLED=0 GOFLAGS="-mod=mod -buildvcs=false"

# `go install` rejects k8s.io/kubernetes because its go.mod has replace lines with relative paths. The module that is made here requires it and
# replaces these with the published modules of the same release: v0.36.3 for v1.36.3.
mkdir "$work/kubernetes"
cd "$work/kubernetes"
printf 'module laboratory.invalid/kubernetes\n' > go.mod
downloaded=$(go mod download -json "k8s.io/kubernetes@$kubernetes" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
staging=v0.${kubernetes#v1.}
{
  printf 'module laboratory.invalid/kubernetes\n'
  grep -E '^(go|godebug) ' "$downloaded/go.mod"
  echo "require k8s.io/kubernetes $kubernetes"
  # The versions that Kubernetes itself requires.
  sed -n '/^require (/,/^)/p' "$downloaded/go.mod" | sed -E "s#^(\s*k8s.io/[a-z-]+) v0\.0\.0(\s|$)#\1 $staging\2#"
  echo 'replace ('
  sed -nE "s#^\s*(k8s.io/[a-z-]+) => \./staging.*#\t\1 => \1 $staging#p" "$downloaded/go.mod"
  echo ')'
} > go.mod
cp "$downloaded/go.sum" go.sum
chmod u+w go.sum
cp "$sources/kubernetes.go" main.go
version=k8s.io/component-base/version
minor=${kubernetes#v1.}
go build -trimpath -tags selinux,notest,grpcnotrace -o "$out/kubernetes" \
  -ldflags "-s -w -X $version.gitVersion=$kubernetes -X $version.gitMajor=1 -X $version.gitMinor=${minor%%.*}" .
for name in kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy kubectl; do
  ln -sf kubernetes "$out/$name"
done

# The same obstacle; etcd's server has no main package to install at a version.
mkdir "$work/etcd"
cd "$work/etcd"
printf 'module laboratory.invalid/etcd\ngo 1.26.0\n' > go.mod
go get "go.etcd.io/etcd/server/v3@$etcd"
go build -trimpath -ldflags "-s -w" -o "$out/etcd" go.etcd.io/etcd/server/v3

cd "$work"
GOFLAGS=-buildvcs=false GOBIN="$out" go install -trimpath -ldflags "-s -w" "helm.sh/helm/v3/cmd/helm@$helm"
go build -trimpath -ldflags "-s -w" -o "$out/pause" "$sources/pause.go"
