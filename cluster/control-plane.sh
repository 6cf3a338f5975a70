#!/usr/bin/env bash
# control-plane.sh: starts etcd, kube-apiserver, kube-controller-manager and kube-scheduler in the background and returns when the API is ready.
# lab.sh runs it in a pid namespace, whose end ends these processes. Reads PROGRAMS (folder of binaries) and RUN (folder of state); writes to RUN:
# pki/ (certificates), logs/, admin.kubeconfig.
set -euo pipefail
address=10.99.0.1
port=6443
etcd=http://127.0.0.1:12379
peers=http://127.0.0.1:12380
services=10.96.0.0/16
pki=$RUN/pki
mkdir -p "$pki" "$RUN/logs"
source "$(dirname "$0")/certificates.sh"

openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 -subj /CN=laboratory -keyout "$pki/ca.key" -out "$pki/ca.crt" 2> /dev/null
openssl genrsa -out "$pki/accounts.key" 2048 2> /dev/null
openssl rsa -in "$pki/accounts.key" -pubout -out "$pki/accounts.pub" 2> /dev/null
certificate apiserver /CN=kube-apiserver "IP:127.0.0.1,IP:$address,IP:10.96.0.1,DNS:kubernetes.default.svc"
certificate admin /O=system:masters/CN=admin
certificate controllers /CN=system:kube-controller-manager
certificate scheduler /CN=system:kube-scheduler
certificate kubelet-client /O=system:masters/CN=kube-apiserver-kubelet-client
for name in admin controllers scheduler; do
  kubeconfig "$name" > "$RUN/$name.kubeconfig"
done

start() { # NAME COMMAND...
  local name=$1
  shift
  setsid nohup "$@" > "$RUN/logs/$name.log" 2>&1 < /dev/null &
  started=$!
}

# Disables fsync, because the data of the laboratory need not survive a crash of the machine.
start etcd "$PROGRAMS/etcd" --data-dir "$RUN/etcd" --unsafe-no-fsync --listen-client-urls "$etcd" --advertise-client-urls "$etcd" \
  --listen-peer-urls "$peers" --initial-advertise-peer-urls "$peers" --initial-cluster "default=$peers"
start apiserver "$PROGRAMS/kube-apiserver" --etcd-servers "$etcd" --bind-address "$address" --advertise-address "$address" --secure-port "$port" \
  --client-ca-file "$pki/ca.crt" --tls-cert-file "$pki/apiserver.crt" --tls-private-key-file "$pki/apiserver.key" \
  --kubelet-client-certificate "$pki/kubelet-client.crt" --kubelet-client-key "$pki/kubelet-client.key" \
  --service-account-issuer https://kubernetes.default.svc --service-account-key-file "$pki/accounts.pub" \
  --service-account-signing-key-file "$pki/accounts.key" --service-cluster-ip-range "$services" \
  --kubelet-preferred-address-types=InternalIP --authorization-mode Node,RBAC --allow-privileged=true --event-ttl 10m
apiserver=$started
# Tests stop and continue this process.
echo "$apiserver" > "$RUN/apiserver.pid"
deadline=$((SECONDS + 60))
until "$PROGRAMS/kubectl" --kubeconfig "$RUN/admin.kubeconfig" get --raw /readyz > /dev/null 2>&1; do
  if ! kill -0 "$apiserver" 2> /dev/null || [ "$SECONDS" -gt "$deadline" ]; then
    echo "kube-apiserver is not ready:" >&2
    tail -5 "$RUN/logs/apiserver.log" >&2
    exit 1
  fi
  sleep 0.25
done
# Periods are shorter than the defaults, so that a lost node is detected within seconds (50 s by default).
start controllers "$PROGRAMS/kube-controller-manager" --kubeconfig "$RUN/controllers.kubeconfig" \
  --authentication-kubeconfig "$RUN/controllers.kubeconfig" --authorization-kubeconfig "$RUN/controllers.kubeconfig" --bind-address 127.0.0.1 \
  --service-account-private-key-file "$pki/accounts.key" --root-ca-file "$pki/ca.crt" --use-service-account-credentials=true \
  --leader-elect=false --node-monitor-grace-period=8s --node-monitor-period=1s
start scheduler "$PROGRAMS/kube-scheduler" --kubeconfig "$RUN/scheduler.kubeconfig" --authentication-kubeconfig "$RUN/scheduler.kubeconfig" \
  --authorization-kubeconfig "$RUN/scheduler.kubeconfig" --bind-address 127.0.0.1 --leader-elect=false
