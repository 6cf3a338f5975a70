#!/usr/bin/env bash
# lab.sh NODES COMMAND...: runs COMMAND with a Kubernetes cluster of real nodes and containers on one machine. Run as root.
#   PROGRAMS  folder that programs/build.sh has filled
#   RUN       empty folder for state and logs
#   IMAGES    archives that each node imports, separated by spaces
# COMMAND gets KUBECONFIG, and kubectl and helm on its PATH. The exit status is that of COMMAND.
#
# Everything runs in namespaces of this run: pid, mount, net, ipc and uts for the laboratory, the same and a cgroup namespace for each node.
# They have no route out of the machine. Nothing outside of these namespaces changes, and nothing remains when the run ends or is killed, except
# for empty cgroups after SIGKILL, which the next run removes. The control plane is at 10.99.0.1:6443, node i at 10.99.0.(10+i), and its pods are in
# 10.244.i.0/24 (CNI's bridge plugin and static routes between nodes). kube-proxy gives services their addresses. There is no DNS.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")

# Removes the cgroups of the nodes of a run that has ended; `rmdir` fails for a cgroup that still has processes.
drop_cgroups() { # RUN_ID
  awk '$3 == "cgroup" { print $2 }' /proc/mounts | while read -r mount; do
    find "$mount" -maxdepth 5 -type d -name "$1-node*" 2> /dev/null | while read -r group; do
      find "$group" -depth -type d -exec rmdir {} \; 2> /dev/null || true
    done
  done
}

start_laboratory() {
  find /sys/fs/cgroup/pids -maxdepth 5 -type d -name 'galatea-lab-*' 2> /dev/null | sed -E 's/.*galatea-lab-([0-9]+)-.*/\1/' | sort -u |
    while read -r process; do [ -d "/proc/$process" ] || drop_cgroups "galatea-lab-$process"; done
  child=
  trap end_laboratory EXIT
  trap 'exit 143' TERM INT HUP
  # If this script is killed, unshare is killed too, and with it the first process of the pid namespace and thus all its processes.
  LAB_ID=galatea-lab-$$ LAB_STAGE=inside setpriv --pdeathsig KILL \
    unshare --mount --net --pid --uts --ipc --fork --mount-proc --kill-child "$here/lab.sh" "$@" &
  child=$!
  wait "$child" && status=0 || status=$?
  child=
  exit "$status"
}

end_laboratory() {
  set +e
  trap '' TERM INT HUP
  if [ -n "$child" ]; then
    kill -9 "$child" 2> /dev/null
    wait "$child" 2> /dev/null
  fi
  # The kernel ends the processes of a pid namespace shortly after its first one.
  for _ in 1 2 3 4 5 6 7 8; do
    drop_cgroups "galatea-lab-$$"
    [ -n "$(find /sys/fs/cgroup -maxdepth 6 -type d -name "galatea-lab-$$-*" 2> /dev/null)" ] || break
    sleep 0.5
  done
}

# Moves this shell to new cgroups below its current ones; a cgroup namespace then shows the new cgroups as the root.
enter_cgroups() { # NAME
  local mount type name own group
  while read -r _ mount type _; do
    [ "$type" = cgroup ] || continue
    name=$(basename "$mount")
    own=$(awk -F: -v name="$name" '$2 == name || $2 == "name=" name { print $3 }' /proc/self/cgroup)
    group=$mount${own%/}/$1
    mkdir -p "$group"
    if [ "$name" = cpuset ]; then
      cat "$mount${own%/}/cpuset.cpus" > "$group/cpuset.cpus"
      cat "$mount${own%/}/cpuset.mems" > "$group/cpuset.mems"
    fi
    echo "$BASHPID" > "$group/cgroup.procs"
  done < /proc/mounts
}

start_node() { # NUMBER
  local node=node$1
  ip netns add "$node"
  ip link add "link$1" type veth peer name eth0 netns "$node"
  ip link set "link$1" master bridge up
  ip route add "10.244.$1.0/24" via "10.99.0.$((10 + $1))"
  (
    enter_cgroups "$LAB_ID-$node"
    LAB_STAGE=node NODE=$1 exec nsenter --net="/run/netns/$node" \
      unshare --cgroup --mount --pid --uts --ipc --fork --mount-proc --kill-child "$here/node.sh" > "$RUN/logs/$node.log" 2>&1
  ) &
  # A test stops a node by killing this process.
  echo $! > "$RUN/$node.pid"
  disown
}

run_inside() {
  export NODES=$1
  shift
  mount --make-rprivate /
  mount -t tmpfs tmpfs /run
  mkdir -p /run/netns
  ip link set lo up
  ip link add bridge type bridge
  ip addr add 10.99.0.1/24 dev bridge
  ip link set bridge up
  echo 1 > /proc/sys/net/ipv4/ip_forward
  "$here/control-plane.sh"
  export KUBECONFIG=$RUN/admin.kubeconfig PATH=$PROGRAMS:$PATH
  export HELM_CACHE_HOME=$RUN/helm HELM_CONFIG_HOME=$RUN/helm HELM_DATA_HOME=$RUN/helm
  for number in $(seq "$NODES"); do start_node "$number"; done
  # Packets to addresses of services are routed to the first node, whose kube-proxy forwards them.
  ip route add 10.96.0.0/16 via 10.99.0.11
  # Most of this time is the import of an image of hundreds of megabytes.
  local deadline=$((SECONDS + 900))
  until [ "$(kubectl get nodes --no-headers 2> /dev/null | grep -cw Ready)" = "$NODES" ]; do
    if [ "$SECONDS" -gt "$deadline" ]; then
      echo "Not all nodes are ready after 900 s; their logs are in $RUN/logs:" >&2
      tail -n 5 "$RUN"/logs/node*.log >&2
      exit 1
    fi
    sleep 0.25
  done
  echo "$NODES nodes are ready after $SECONDS s"
  "$@"
}

export PROGRAMS RUN IMAGES
: "${PROGRAMS:?}" "${RUN:?}" "${IMAGES:?}"
if [ "${LAB_STAGE:-}" = inside ]; then run_inside "$@"; else start_laboratory "$@"; fi
