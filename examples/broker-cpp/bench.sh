#!/usr/bin/env bash
# What do clients cost this broker, beside Kafka 4.3.1 on the same machine? CPU time of the broker
# alone, since the clients share its cores.
#
#   examples/broker-cpp/bench.sh [ROUNDS] [MEGABYTES]     3 rounds of 1000 MB from each client
#
# Two of Kafka's producers write batches of 16 KiB with acks=all to a partition each; two kcat read
# them back. A first round, which warms up both brokers, is not counted. Needs CMake, a compiler of
# C++20, kcat, a JDK of 17 or later, Maven, and room for the records of all rounds twice.
set -euo pipefail
cd "$(dirname "$0")/../.."
rounds=${1:-3}
megabytes=${2:-1000}
readonly RECORD_BYTES=1000
work=$(mktemp -d)
lib=$PWD/target/kafka-lib
ticks=$(getconf CLK_TCK)
pid=
trap '[ -z "$pid" ] || kill -KILL "$pid"; rm -rf "$work"' EXIT

build() {
  cargo build --release --package siltstone-ffi
  cmake -S examples/broker-cpp -B "$work/build" -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_DISABLE_FIND_PACKAGE_Siltstone=ON -DSILTSTONE_LIBRARY_DIR="$PWD/target/release"
  cmake --build "$work/build" --parallel
  [ -d "$lib" ] || mvn -q -B dependency:copy-dependencies -DincludeScope=runtime \
    -f tests/conformance/pom.xml -DoutputDirectory="$lib"
} >&2

kafka() { # OPTIONS... CLASS ARGUMENTS...
  java -Dlog.level=error -Dlog4j2.configurationFile="$PWD/tests/conformance/log4j2.properties" \
    -cp "$lib/*" "$@"
}

wait_for() { # TEXT FILE
  for _ in $(seq 600); do
    if grep -qs "$1" "$2"; then return; fi
    kill -0 "$pid" && sleep 0.1
  done
  cat "$2" >&2
  return 1
}

start_siltstone() {
  "$work/build/siltstone-broker" --log-dir "$work/data" --listen 127.0.0.1:19292 \
    > "$work/log" 2>&1 &
  pid=$!
  wait_for '^listening' "$work/log"
}

# As Kafka's own scripts start it.
start_kafka() {
  cat > "$work/kafka.properties" <<P
node.id=1
process.roles=broker,controller
listeners=PLAINTEXT://127.0.0.1:19292,CONTROLLER://127.0.0.1:19293
controller.listener.names=CONTROLLER
controller.quorum.voters=1@127.0.0.1:19293
log.dirs=$work/data
offsets.topic.replication.factor=1
P
  kafka kafka.tools.StorageTool format -t MkU3OEVBNTcwNTJENDM2Qg -c "$work/kafka.properties" \
    > "$work/format.log"
  java -Xmx1G -Xms1G -server -XX:+UseG1GC -XX:MaxGCPauseMillis=20 \
    -XX:InitiatingHeapOccupancyPercent=35 -Djava.awt.headless=true -Dlog.level=info \
    -Dlog4j2.configurationFile="$PWD/tests/conformance/log4j2.properties" -cp "$lib/*" \
    kafka.Kafka "$work/kafka.properties" > "$work/log" 2>&1 &
  pid=$!
  wait_for 'Kafka Server started' "$work/log"
}

stop() {
  kill -TERM "$pid"
  wait "$pid" || true
  pid=
  rm -rf "$work/data"
}

# Seconds of CPU that the broker has had.
cpu() { sed 's/.*) //' "/proc/$pid/stat" | awk -v ticks="$ticks" '{ print ($12 + $13) / ticks }'; }
now() { date +%s.%N; }
memory() { awk '/^VmRSS/ { print $2 / 1024 }' "/proc/$pid/status"; }

produce() { # TOPIC
  kafka -Xmx256m org.apache.kafka.tools.ProducerPerformance --topic "$1" \
    --num-records $((megabytes * 1000000 / RECORD_BYTES)) --record-size $RECORD_BYTES \
    --throughput -1 --bootstrap-server 127.0.0.1:19292 \
    --command-property acks=all batch.size=16384 linger.ms=5 > "$work/producer-$1.log"
}

consume() { # TOPIC
  kcat -C -q -e -b 127.0.0.1:19292 -t "$1" -p 0 -o beginning -f '%o\n' > "$work/consumed-$1"
  [ "$(wc -l < "$work/consumed-$1")" = $((megabytes * 1000000 / RECORD_BYTES)) ]
}

both() { # COMMAND ROUND
  local one two
  "$1" "r$2-a" & one=$!
  "$1" "r$2-b" & two=$!
  wait "$one"
  wait "$two"
}

measure() { # BROKER
  local round cpu_0 cpu_1 cpu_2 at_0 at_1 at_2
  "start_$1"
  for round in $(seq 0 "$rounds"); do
    cpu_0=$(cpu) at_0=$(now)
    both produce "$round"
    cpu_1=$(cpu) at_1=$(now)
    both consume "$round"
    cpu_2=$(cpu) at_2=$(now)
    [ "$round" = 0 ] || awk -v broker="$1" -v gb="$(awk "BEGIN { print 2 * $megabytes / 1000 }")" \
      -v memory="$(memory)" "BEGIN {
        printf \"%s %.3f %.0f %.3f %.0f %.0f\\n\", broker, ($cpu_1 - $cpu_0) / gb,
          1000 * gb / ($at_1 - $at_0), ($cpu_2 - $cpu_1) / gb, 1000 * gb / ($at_2 - $at_1), memory
      }"
  done
  stop
}

median() { # BROKER FIELD
  awk -v broker="$1" -v field="$2" '$1 == broker { print $field }' "$work/told" | sort -g |
    awk '{ all[NR] = $1 } END { print all[int((NR + 1) / 2)] }'
}

row() { # NAME FIELD
  awk -v name="$1" -v ours="$(median siltstone "$2")" -v kafka="$(median kafka "$2")" \
    'BEGIN { printf "| %s | %s | %s | %.2f |\n", name, ours, kafka, ours / kafka }'
}

build
for broker in siltstone kafka; do measure "$broker" | tee -a "$work/told" >&2; done
echo "| median of $rounds rounds | siltstone | Kafka 4.3.1 | ratio |"
echo '|---|---|---|---|'
row 'CPU seconds of the broker, a GB produced' 2
row 'MB/s produced, by clients that share the cores' 3
row 'CPU seconds of the broker, a GB consumed' 4
row 'MB/s consumed, by clients that share the cores' 5
row 'MB of memory' 6
