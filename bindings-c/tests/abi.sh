#!/bin/sh
# Prints the binary interface: exports, prototypes, status numbers, and the offset of every struct
# field.  abi.sh HEADER LIBRARY [LIST]. With LIST, an earlier output, prints the differences.
set -eu
header=$1
library=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The header without comments and redundant whitespace.
gcc -fpreprocessed -dD -E -P "$header" >"$work/plain.h"

# A program that prints every struct, with the offset and size of each field.
awk '
    BEGIN {
        print "#include <dthrottle.h>\n#include <stdio.h>\nint main(void)\n{"
    }
    /^typedef struct \{/ { count = 0; inside = 1; next }
    inside && /^\}/ {
        inside = 0
        name = $2
        sub(/;$/, "", name)
        printf "    printf(\"struct %s: %%zu bytes\\n\", sizeof(%s));\n", name, name
        for (i = 0; i < count; i++) {
            printf "    printf(\"struct %s.%s: %s at %%zu, %%zu bytes\\n\", ", name, field[i], type[i]
            printf "offsetof(%s, %s), sizeof(((%s *)0)->%s));\n", name, field[i], name, field[i]
        }
    }
    inside {
        field[count] = $NF
        gsub(/^\**|\[.*|;$/, "", field[count])
        type[count] = $1
        for (i = 2; i < NF; i++)
            type[count] = type[count] " " $i
        if ($NF ~ /^\*/)
            type[count] = type[count] " *"
        count++
    }
    END { print "    return 0;\n}" }
' "$work/plain.h" >"$work/structs.c"
gcc -I "$(dirname "$header")" "$work/structs.c" -o "$work/structs"

{
    nm -D --defined-only "$library" | awk '{print "export " $3}'
    awk '/^#define DTHROTTLE_(OK|ERR_|UNLIMITED|PASS|DELAY|REFUSE|HEADERS_|COST_|ADDRESS_)/ {sub(/^#define /, "number "); print}' "$work/plain.h"
    # A prototype may span several lines.
    awk '
        /^[a-z].*dthrottle_[a-z_]*\(/ { text = ""; inside = 1 }
        inside { sub(/^ +/, ""); text = text (text ~ /,$/ ? " " : "") $0 }
        inside && /;$/ { inside = 0; print "call " text }
    ' "$work/plain.h"
    "$work/structs"
} | LC_ALL=C sort >"$work/found"

[ $# = 3 ] || {
    cat "$work/found"
    exit
}
gone=$(LC_ALL=C comm -13 "$work/found" "$3")
new=$(LC_ALL=C comm -23 "$work/found" "$3")
[ -z "$gone" ] || {
    echo "$gone" | sed 's/^/- /'
    echo "existing programs need this: restore it, or change the major version and run make abi"
}
[ -z "$new" ] || {
    echo "$new" | sed 's/^/+ /'
    echo "this is new and may not change later: to add it, run make abi"
}
[ -z "$gone$new" ]
