#!/usr/bin/env bash
# The chart on a cluster of your own machine: kind, a PostgreSQL and a Valkey in it, an upgrade and a roll-back.
# NOT RUN where this was made: no container engine was at hand. Needs docker or podman, kind, kubectl, helm.
#   docs/operate/kind.sh up | upgrade | rollback | down
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

name=counterfoil
engine=${ENGINE:-docker}
password=$(printf '%s' "${PASSWORD:-only-for-kind}")

in_a_worker() { kubectl -n "$name" exec deploy/"$name"-worker-read -- counterfoil "$@"; }

release() { helm upgrade --install "$name" ./helm -n "$name" -f helm/demo/values.yaml --wait --timeout 5m "$@"; }

case "${1:-up}" in
  up)
    "$engine" build -f Containerfile -t counterfoil:0.1.0 .
    kind create cluster --name "$name"
    "$engine" save counterfoil:0.1.0 | kind load image-archive /dev/stdin --name "$name"
    kubectl create namespace "$name"
    kubectl label namespace "$name" pod-security.kubernetes.io/enforce=restricted
    kubectl -n "$name" create secret generic counterfoil-servers --from-literal=password="$password"
    kubectl -n "$name" create secret generic counterfoil-database \
      --from-literal=url="postgresql://postgres:$password@demo-postgres:5432/postgres"
    kubectl -n "$name" create secret generic counterfoil-broker --from-literal=url="redis://:$password@demo-valkey:6379/0"
    kubectl -n "$name" apply -f helm/demo/servers.yaml
    kubectl -n "$name" rollout status deploy/demo-postgres deploy/demo-valkey --timeout 3m
    release
    helm test "$name" -n "$name" || true # the demo's target is nowhere: doctor says so
    in_a_worker epoch show
    ;;
  upgrade)
    release --set execution.generation=2
    in_a_worker epoch show
    ;;
  rollback)
    helm rollback "$name" -n "$name" --wait --timeout 5m
    in_a_worker epoch show
    in_a_worker create on --reason "kind: the older release is well"
    ;;
  down) kind delete cluster --name "$name" ;;
  *)
    echo "usage: docs/operate/kind.sh up | upgrade | rollback | down" >&2
    exit 2
    ;;
esac
