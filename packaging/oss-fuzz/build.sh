#!/bin/bash -eu
# Builds every tests/fuzz/NAME_fuzz.c with OSS-Fuzz's compiler, flags and engine, into $OUT: the targets, the shared
# libraries that they need, their seeds, and the scripts and files that two of them read. Runs in a clone of the repository.

make -f mk/build.mk -j"$(nproc)" B="$WORK/fuzz" VARIANT=fuzz VERSION=fuzz PROGRAM_PREFIX= WITH_POSTGRES=no CC="$CC" sanitizers= fuzz

mkdir -p "$OUT/lib"
mkdir -p "$OUT/tests/fixtures"
cp -R importers "$OUT/"
cp -R tests/fixtures/import "$OUT/tests/fixtures/"
for target in "$WORK"/fuzz/tests/fuzz/*_fuzz; do
    name=$(basename "$target")
    cp "$target" "$OUT/"
    # The machine that runs them has the C library, and none of these.
    ldd "$target" | awk '$3 ~ /^\// { print $3 }' | grep -vE '/(libc|libm|libpthread|libdl|librt|ld-linux[^/]*)\.so' |
        xargs -r cp -Lt "$OUT/lib"
    # shellcheck disable=SC2016 # for the dynamic linker
    patchelf --force-rpath --set-rpath '$ORIGIN/lib' "$OUT/$name"
    seeds=tests/fuzz/corpus/${name%_fuzz}
    [ ! -d "$seeds" ] || zip -qjr "$OUT/${name}_seed_corpus.zip" "$seeds"
done
# Libraries find each other.
# shellcheck disable=SC2016
patchelf --force-rpath --set-rpath '$ORIGIN' "$OUT"/lib/*.so*
