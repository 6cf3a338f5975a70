#!/usr/bin/env bash
# node.sh: runs containerd, kubelet and kube-proxy of one node, in namespaces and cgroups that lab.sh has created. Reads NODE
# (number of the node), NODES, PROGRAMS, RUN and IMAGES; writes only to $RUN/node$NODE. Needs cgroup v1.
set -euo pipefail
name=node$NODE
address=10.99.0.$((10 + NODE))
folder=$RUN/$name
pki=$RUN/pki
mkdir -p "$folder"/{kubelet,containerd,cni,podlogs,var,var.work,sysctl}
source "$(dirname "$0")/certificates.sh"

isolate_files() {
  mount --make-rprivate /
  mount -t sysfs sysfs /sys
  mount -t tmpfs -o mode=755 cgroup /sys/fs/cgroup
  local controller
  for controller in cpu cpuacct cpuset memory devices freezer blkio pids; do
    mkdir "/sys/fs/cgroup/$controller"
    mount -t cgroup -o "$controller" cgroup "/sys/fs/cgroup/$controller"
  done
  mkdir /sys/fs/cgroup/systemd
  mount -t cgroup -o none,name=systemd cgroup /sys/fs/cgroup/systemd
  mount -t tmpfs tmpfs /run
  mkdir -p /run/lock
  # Files that programs write below /var are stored in the folder of the node.
  mount -t overlay overlay -o "lowerdir=/var,upperdir=$folder/var,workdir=$folder/var.work" /var
  mkdir -p /var/lib/cni /var/lib/kubelet /var/log/pods /var/log/containers /var/lib/volumes/1 /var/lib/volumes/2 /var/lib/volumes/3
  # The kubelet sets these parameters of the whole kernel. It gets copies, so that the settings of the machine do not change.
  local setting copy
  for setting in vm/overcommit_memory vm/panic_on_oom kernel/panic kernel/panic_on_oops kernel/keys/root_maxkeys kernel/keys/root_maxbytes; do
    copy=$folder/sysctl/${setting//\//.}
    cat "/proc/sys/$setting" > "$copy"
    mount --bind "$copy" "/proc/sys/$setting"
  done
}

join_network() {
  hostname "$name"
  ip link set lo up
  ip addr add "$address/24" dev eth0
  ip link set eth0 up
  ip route add default via 10.99.0.1
  local other
  for other in $(seq "$NODES"); do
    [ "$other" = "$NODE" ] || ip route add "10.244.$other.0/24" via "10.99.0.$((10 + other))"
  done
  echo 1 > /proc/sys/net/ipv4/ip_forward
  cat > "$folder/cni/10-bridge.conflist" << JSON
{
  "cniVersion": "0.4.0",
  "name": "pods",
  "plugins": [
    {
      "type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": false, "hairpinMode": true,
      "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.244.$NODE.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}
    },
    {"type": "portmap", "capabilities": {"portMappings": true}}
  ]
}
JSON
}

start_containerd() {
  # The machine may lack CAP_SYS_RESOURCE and the hugetlb controller.
  cat > "$folder/containerd.toml" << TOML
version = 2
root = "$folder/containerd"
state = "/run/containerd"
oom_score = 0
[grpc]
  address = "/run/containerd/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  restrict_oom_score_adj = true
  disable_hugetlb_controller = true
  sandbox_image = "laboratory.invalid/pause:1"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "$folder/cni"
TOML
  containerd -c "$folder/containerd.toml" > "$folder/containerd.log" 2>&1 &
  local deadline=$((SECONDS + 30))
  until ctr version > /dev/null 2>&1; do
    [ "$SECONDS" -lt "$deadline" ] || { echo "containerd does not respond after 30 s; see $folder/containerd.log" >&2; exit 1; }
    sleep 0.1
  done
  local image
  for image in $IMAGES; do ctr -n k8s.io images import "$image" > /dev/null; done
}

start_kubelet() {
  certificate "$name" "/O=system:nodes/CN=system:node:$name" "IP:$address,DNS:$name"
  kubeconfig "$name" > "$folder/kubeconfig"
  : > "$folder/resolv.conf"
  cat > "$folder/kubelet.yaml" << YAML
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
cgroupDriver: cgroupfs
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: $pki/ca.crt}}
authorization: {mode: Webhook}
tlsCertFile: $pki/$name.crt
tlsPrivateKeyFile: $pki/$name.key
resolvConf: $folder/resolv.conf
failSwapOn: false
enforceNodeAllocatable: []
podLogsDir: $folder/podlogs
volumePluginDir: $folder/plugins
nodeStatusUpdateFrequency: 2s
syncFrequency: 5s
imageMinimumGCAge: 24h
evictionHard: {}
oomScoreAdj: 0
YAML
  "$PROGRAMS/kubelet" --config "$folder/kubelet.yaml" --kubeconfig "$folder/kubeconfig" --root-dir "$folder/kubelet" --node-ip "$address" \
    --hostname-override "$name" > "$folder/kubelet.log" 2>&1 &
}

start_proxy() {
  # Uses the administrator's certificate, because no test depends on the permissions of kube-proxy.
  "$PROGRAMS/kube-proxy" --kubeconfig "$RUN/admin.kubeconfig" --hostname-override "$name" --proxy-mode iptables --cluster-cidr 10.244.0.0/16 \
    --conntrack-max-per-core 0 --conntrack-tcp-timeout-established 0s --conntrack-tcp-timeout-close-wait 0s --oom-score-adj 0 \
    > "$folder/proxy.log" 2>&1 &
}

isolate_files
join_network
start_containerd
start_kubelet
start_proxy
wait
