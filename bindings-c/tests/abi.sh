#!/bin/sh
# What programs compiled with an earlier header rely on: exports, prototypes, status numbers, and
# where every field of a struct lies.  abi.sh HEADER LIBRARY prints it; with a third argument, a
# list printed earlier, it says what differs.
set -eu
header=$1
library=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The header without comments and blanks that mean nothing.
gcc -fpreprocessed -dD -E -P "$header" >"$work/plain.h"

# A program that prints every struct, with the place and size of each field.
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
    # A prototype may take several lines.
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
    echo "programs rely on this: keep it, or give the library another major version and run make abi"
}
[ -z "$new" ] || {
    echo "$new" | sed 's/^/+ /'
    echo "this is new: if it shall stay for good, run make abi"
}
[ -z "$gone$new" ]
