#!/usr/bin/env bash
# A Slurm cluster on loopback, in folder $2: a controller, munge and four nodes with a GPU each (a device
# file stands for it), all of this machine. $1: start, stop, start-controller, stop-controller, start-node N,
# kill-node N. Exit status 77: Slurm is not installed, or cannot run here.
set -euo pipefail
action=$1 folder=$2
export PATH=$PATH:/usr/sbin:/sbin SLURM_CONF=$folder/slurm.conf
nodes=(n1 n2 n3 n4)

skip() {
  echo "skipped: $*"
  exit 77
}

configure() {
  local me ports version plugin=cgroup/v1 node i
  me=$(id -un)
  mapfile -t ports < <(python3 -c '
import socket
sockets = [socket.socket() for _ in range(5)]
for one in sockets:
    one.bind(("127.0.0.1", 0))
    print(one.getsockname()[1])')
  version=$(slurmd -V)  # "slurm-wlm 22.05.8"
  version=${version##* }
  if [[ ${version%%.*} -ge 24 ]]; then plugin=disabled; fi
  mkdir -p "$folder"/{munge,state,log} "${nodes[@]/#/$folder/spool-}"
  chmod 755 "$folder" "$folder/munge"
  (umask 077 && head -c 128 /dev/urandom >"$folder/munge/key")
  echo "CgroupPlugin=$plugin" >"$folder/cgroup.conf"
  cat >"$folder/slurm.conf" <<CONF
ClusterName=rekernel
SlurmctldHost=$(hostname)(127.0.0.1)
SlurmctldPort=${ports[4]}
SlurmUser=$me
SlurmdUser=$me
AuthType=auth/munge
AuthInfo=socket=$folder/munge/socket
CredType=cred/munge
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool-%n
SlurmctldPidFile=$folder/controller.pid
SlurmdPidFile=$folder/%n.pid
SlurmctldLogFile=$folder/log/controller
SlurmdLogFile=$folder/log/%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
GresTypes=gpu
MpiDefault=none
SlurmctldTimeout=5
SlurmdTimeout=5
KillWait=1
MinJobAge=2
MessageTimeout=5
ReturnToService=2
MaxJobCount=${MAX_JOBS:-1000}
MaxArraySize=6
SchedulerParameters=sched_interval=1,bf_interval=1,sched_min_interval=100000
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
PartitionName=gpus Nodes=n[1-3] Default=YES MaxTime=60 PreemptMode=OFF
PartitionName=apart Nodes=n4 MaxTime=60 PreemptMode=OFF
# Their jobs make room for those of the last one.
PartitionName=requeued Nodes=n1 MaxTime=60
PartitionName=cancelled Nodes=n2 MaxTime=60 PreemptMode=CANCEL
PartitionName=urgent Nodes=n[1-2] MaxTime=60 PriorityTier=2 PreemptMode=OFF
CONF
  : >"$folder/gres.conf"
  for i in "${!nodes[@]}"; do
    node=${nodes[i]}
    echo "NodeName=$node Name=gpu File=/dev/null" >>"$folder/gres.conf"
    echo "NodeName=$node NodeHostname=$(hostname) NodeAddr=127.0.0.1 Port=${ports[i]} CPUs=1 Gres=gpu:1" \
      >>"$folder/slurm.conf"
  done
}

# Daemons hold on to none of our descriptors.
start_node() { slurmd -N "$1" -c </dev/null >/dev/null 2>&1; }

# $2 tries of a tenth of a second until the command that follows succeeds.
eventually() {
  local tries=$1
  shift
  for _ in $(seq "$tries"); do
    "$@" >/dev/null 2>&1 && return 0
    sleep 0.1
  done
  return 1
}

is_idle() { [[ $(sinfo -h -N -n "$1" -o %T | sort -u) == idle ]]; }

case $action in
  start)
    for tool in slurmctld slurmd sbatch munged python3; do
      command -v "$tool" >/dev/null || skip "no $tool: Debian's packages are slurmctld, slurmd and munge"
    done
    configure
    munged --key-file="$folder/munge/key" --socket="$folder/munge/socket" \
      --pid-file="$folder/munge/pid" --log-file="$folder/munge/log" --seed-file="$folder/munge/seed" \
      --num-threads=2 --force </dev/null >/dev/null 2>&1 || skip "munged does not start: $(tail -n 1 "$folder/munge/log")"
    slurmctld -c </dev/null >/dev/null 2>&1
    for node in "${nodes[@]}"; do start_node "$node"; done
    for node in "${nodes[@]}"; do
      eventually 150 is_idle "$node" ||
        { "$0" stop "$folder" && skip "slurmd does not start: $(grep -h error "$folder/log/$node" | tail -n 1)"; }
    done
    ;;
  start-controller) slurmctld </dev/null >/dev/null 2>&1 && eventually 100 scontrol ping ;;
  # A controller that is gone saves nothing any more; what it was told is in its state.
  stop-controller)
    controller=$(<"$folder/controller.pid")
    kill "$controller"
    gone() { ! kill -0 "$controller"; }
    eventually 200 gone
    ;;
  start-node) start_node "$3" && eventually 200 is_idle "$3" ;;
  # With everything that runs there, as by a power cut.
  kill-node)
    kill -9 "$(<"$folder/$3.pid")"
    for process in /proc/[0-9]*; do
      if grep -qsz "^SLURMD_NODENAME=$3\$" "$process/environ" && grep -qsz "^SLURM_CONF=$SLURM_CONF\$" "$process/environ"; then
        kill -9 "${process#/proc/}" 2>/dev/null || true
      fi
    done
    ;;
  stop)
    for node in "${nodes[@]}"; do
      [[ ! -e $folder/$node.pid ]] || kill "$(<"$folder/$node.pid")" 2>/dev/null || true
    done
    for file in controller.pid munge/pid; do
      [[ ! -e $folder/$file ]] || kill "$(<"$folder/$file")" 2>/dev/null || true
    done
    ;;
  *) echo "unknown action $action" && exit 2 ;;
esac
