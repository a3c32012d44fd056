#!/usr/bin/env bash
# Walks three people through Lacuna, each on a bare Debian of its own: make trial.
#
#   trial.sh WHEEL KAFKA [WALK...]      WALK is student, operator or modeller
#
# It takes the commit that is checked out, not the edits of the working tree. Needs
# root, debootstrap, systemd-nspawn and a Debian mirror; for the operator the Kafka
# broker in the folder KAFKA (ops/setup/kafka/broker.sh) and Java, and ports 8087
# and 9090. The bare root is made once, below LACUNA_CHROOT (default: .cache/trial);
# each walk has a copy that is thrown away. The operator's is booted, with systemd as
# its first process. Every walk stops at the first command that fails. What they
# print goes to bin/trial/ and, with PAGE, is put together to that page. BUSY=1 is
# for a machine that others use, see steps.sh. PACKAGE names a Debian package for the
# operator, who then does not make one. CACHES names a folder for the caches
# of Go and pip that walks share: for work on the walks, since a walk that finds them
# full says nothing of the time that a newcomer needs.
set -euo pipefail
wheel=$(realpath "$1") kafka=$2
shift 2
walks=("$@")
[ ${#walks[@]} -gt 0 ] || walks=(student operator modeller)
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
suite=${LACUNA_SUITE:-$(. /etc/os-release && echo "$VERSION_CODENAME")}
bare=${LACUNA_CHROOT:-$top/.cache/trial/$suite}
[ "$(id -u)" -eq 0 ] || {
  echo "trial: root is needed, for roots of their own" >&2
  exit 1
}
"$top/ops/setup/packages.sh" "debootstrap=command -v debootstrap" "systemd-container=command -v systemd-nspawn"

scratch=$(mktemp -d) broker='' machine=''
leave() {
  [ -z "$machine" ] || { kill "$machine" && wait "$machine"; } 2>/dev/null || true
  [ -z "$broker" ] || kill "$broker" 2>/dev/null || true
  for m in "$scratch"/*/root; do umount -q -l "$m" || true; done
  rm -rf --one-file-system "$scratch"
}
trap leave EXIT

if [ ! -x "$bare/usr/bin/dpkg" ]; then
  echo "trial: making a bare Debian in $bare" >&2
  mkdir -p "$(dirname "$bare")"
  fresh=$(mktemp -d "$bare.XXXXXX")
  debootstrap --variant=minbase "$suite" "$fresh" >"$scratch/debootstrap.log" || {
    tail "$scratch/debootstrap.log" >&2
    rm -rf --one-file-system "$fresh"
    exit 1
  }
  chmod 755 "$fresh"
  mv "$fresh" "$bare"
fi
git clone -q --bare --no-local "$top" "$scratch/lacuna.git"
git -C "$scratch/lacuna.git" update-ref HEAD "$(git -C "$top" rev-parse HEAD)"

# root_of makes the root of a walk: the bare one below, what changes on top. It
# trusts the authorities that this machine does.
root_of() {
  local dir=$scratch/$1
  mkdir -p "$dir/upper" "$dir/work" "$dir/root"
  mount -t overlay overlay -o "lowerdir=$bare,upperdir=$dir/upper,workdir=$dir/work" "$dir/root"
  mkdir -p "$dir/root/usr/local/share/ca-certificates"
  cp /usr/local/share/ca-certificates/*.crt "$dir/root/usr/local/share/ca-certificates/" 2>/dev/null || true
}

inside=(--quiet --register=no --keep-unit --console=pipe --resolv-conf=copy-host
  --bind-ro="$here:/trial" --bind-ro="$scratch/lacuna.git:/srv/lacuna.git" --bind-ro="$(dirname "$wheel"):/srv/wheel")
if [ -n "${CACHES:-}" ]; then
  mkdir -p "$CACHES/cache" "$CACHES/go"
  inside+=(--bind="$CACHES/cache:/root/.cache" --bind="$CACHES/go:/root/go")
fi
if [ -n "${PACKAGE:-}" ]; then
  inside+=(--bind-ro="$(dirname "$(realpath "$PACKAGE")"):/srv/package")
fi
settings=(PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root "BUSY=${BUSY:-}" "PACKAGE=$(basename "${PACKAGE:-}")")
for name in http_proxy https_proxy no_proxy PIP_CERT PIP_INDEX_URL GOPROXY GOSUMDB; do # the way to the network
  [ -z "${!name:-}" ] || settings+=("$name=${!name}")
done

# walk runs a walk in its root.
walk() {
  root_of "$1"
  systemd-nspawn "${inside[@]}" --directory="$scratch/$1/root" --as-pid2 /usr/bin/env "${settings[@]}" "/trial/$1.sh" </dev/null &
  machine=$! # in the background, so that an interrupted trial can end it
  wait "$machine"
}

# walk_operator boots a root with systemd, beside a broker, and runs a walk in it.
walk_operator() {
  root_of operator
  start_broker
  systemd-nspawn "${inside[@]}" --directory="$scratch/operator/root" --as-pid2 /usr/bin/env "${settings[@]}" DEBIAN_FRONTEND=noninteractive \
    bash -c 'apt-get update -qq && apt-get install -y -qq --no-install-recommends systemd systemd-sysv dbus' >/dev/null 2>&1 </dev/null
  # Decoding children give up rights by Landlock, which nspawn does not let through by itself.
  systemd-nspawn "${inside[@]}" --directory="$scratch/operator/root" --boot \
    --system-call-filter='landlock_create_ruleset landlock_add_rule landlock_restrict_self' </dev/null >"$scratch/boot.log" 2>&1 &
  machine=$!
  local first='' try
  for try in $(seq 60); do
    first=$(pgrep -P "$machine" -x systemd || true)
    [ -z "$first" ] || ! nsenter -t "$first" -m -p -u -i systemctl is-system-running 2>/dev/null | grep -qE 'running|degraded' || break
    [ "$try" -lt 60 ] || {
      cat "$scratch/boot.log" >&2
      return 1
    }
    sleep 1
  done
  nsenter -t "$first" -m -p -u -i /usr/bin/env -i "${settings[@]}" "BROKERS=127.0.0.1:$port" /trial/operator.sh </dev/null
}

# start_broker starts Kafka on a free port, and waits until it takes requests.
start_broker() {
  local dir=$scratch/kafka try
  mkdir -p "$dir/data"
  port=$((20000 + RANDOM % 10000))
  cat >"$dir/server.properties" <<PROPERTIES
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:$((port + 1))
controller.listener.names=CONTROLLER
listeners=OPEN://127.0.0.1:$port,CONTROLLER://127.0.0.1:$((port + 1))
listener.security.protocol.map=OPEN:PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=OPEN
log.dirs=$dir/data
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
PROPERTIES
  printf 'version=1\ncluster.id=AAAAAAAAAAAAAAAAAAAAAQ\nnode.id=1\n' >"$dir/data/meta.properties"
  java -Xmx384m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -cp "$kafka/lib/*" kafka.Kafka "$dir/server.properties" >"$dir/log" 2>&1 &
  broker=$!
  for try in $(seq 90); do
    ! grep -q 'Kafka Server started' "$dir/log" || return 0
    kill -0 "$broker" 2>/dev/null || break
    sleep 1
  done
  tail "$dir/log" >&2
  return 1
}

declare -A who=(
  [student]='A student with a folder of granules and a second sensor'
  [operator]='An operator with systemd, Kafka and Prometheus'
  [modeller]='A modeller who reads a year by xarray'
)
out=$top/bin/trial
mkdir -p "$out"
for one in "${walks[@]}"; do
  [ -n "${who[$one]:-}" ] || {
    echo "trial: there is no walk $one" >&2
    exit 2
  }
  how=walk
  [ "$one" != operator ] || how=walk_operator
  printf '\n## %s\n\nCommit %s, %d processors, %s.\n' "${who[$one]}" "$(git -C "$top" rev-parse --short HEAD)" "$(nproc)" \
      "$([ "${BUSY:-}" = 1 ] && echo "which others kept busy" || echo "with nothing else to do")" | tee "$out/$one.md"
  $how "$one" > >(tee -a "$out/$one.md")
done

if [ -n "${PAGE:-}" ]; then
  {
    sed '/^<!-- walks/,$d' "$top/docs/trial.md"
    printf '<!-- walks: from here on made by make trial -->\n'
    sed 's#/root/#~/#g' "$out/student.md" "$out/operator.md" "$out/modeller.md" # where a walk is at home says nothing
  } >"$out/page.md"
  mv "$out/page.md" "$PAGE"
fi
