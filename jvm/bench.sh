#!/usr/bin/env bash
# Measures what calls cost from Java: jvm/bench.sh, with a JDK of 22 or later as JAVA_HOME.
set -euo pipefail
cd "$(dirname "$0")"
native=${SILTSTONE_NATIVE:-$PWD/../target/release}
[ -n "${SILTSTONE_NATIVE:-}" ] || cargo build --release --package siltstone-ffi
mvn -q -B -Dsiltstone.native="$native" test-compile \
  org.apache.maven.plugins:maven-dependency-plugin:3.8.1:build-classpath \
  -Dmdep.outputFile=target/classpath
exec "$JAVA_HOME/bin/java" --enable-native-access=ALL-UNNAMED \
  -cp "target/classes:target/test-classes:$(cat target/classpath)" io.siltstone.bench.Crossings
