#!/usr/bin/env bash
# Packs the test data of this folder from sets of fixtures: kits/KIT.tar.zst, cases.tar.zst and metadata.tar.zst.
#
#   pack.sh FIXTURES CASES METADATA
#     FIXTURES  a folder with KIT/case.json, KIT/raw.tar.zst and KIT/expected.tar.zst for each kit
#     CASES     a folder with cases.json and data/
#     METADATA  a folder with records/, images/, three-nodes/, cases.json and config-resolution.json
#
# A kit holds case.json, STATE/{data,metadata,remote}/… as Kafka left them and expect/STATE/PARTITION.json. Archives are
# GNU tar with sparse members, because the index files of a killed broker are 10 MiB of zeros each.
set -euo pipefail
[ $# -eq 3 ] || { sed -n '2,/^set -e/{/^#/s/^# \{0,1\}//p}' "$0" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
fixtures=$(cd "$1" && pwd)
cases=$(cd "$2" && pwd)
metadata=$(cd "$3" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Sorted, with fixed owners and times: packing the same files twice gives the same bytes.
pack() { # FOLDER ARCHIVE
  tar -C "$1" --format=gnu --sparse --hole-detection=raw --sort=name --owner=0 --group=0 --numeric-owner \
      --mode=u=rwX,go=rX --mtime=@0 -cf - . | zstd -q -19 --long=27 -f -o "$2"
}

mkdir -p "$here/kits"
for kit in "$fixtures"/*/; do
  kit=$(basename "$kit")
  [ -f "$fixtures/$kit/raw.tar.zst" ] || continue
  mkdir -p "$work/$kit/expect"
  zstd -dc "$fixtures/$kit/raw.tar.zst" | tar -xf - -C "$work" --exclude='kafka.log' --exclude='.lock'
  mkdir "$work/expected"
  zstd -dc "$fixtures/$kit/expected.tar.zst" | tar -xf - -C "$work/expected" --exclude='*.dump.txt'
  mv "$work/expected/$kit"/* "$work/$kit/expect/"
  cp "$fixtures/$kit/case.json" "$work/$kit/"
  pack "$work/$kit" "$here/kits/$kit.tar.zst"
  rm -rf "${work:?}/$kit" "$work/expected"
done

mkdir "$work/cases"
cp -a "$cases/cases.json" "$cases/data" "$work/cases/"
chmod -R u+w "$work/cases"
pack "$work/cases" "$here/cases.tar.zst"

mkdir "$work/metadata"
cp -a "$metadata"/{records,images,three-nodes,cases.json,config-resolution.json} "$work/metadata/"
chmod -R u+w "$work/metadata"
zstd -dc "$metadata/three-nodes/raw.tar.zst" | tar -xf - -C "$work/metadata/three-nodes" --exclude='.lock'
rm "$work/metadata/three-nodes/raw.tar.zst"
pack "$work/metadata" "$here/metadata.tar.zst"
ls -l "$here"/kits/*.tar.zst "$here"/{cases,metadata}.tar.zst
