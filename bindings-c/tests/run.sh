#!/bin/sh
# Tests the installed library: pkg-config, every C standard, shared and static linking, valgrind and
# the sanitizers.
# `make test-c` builds the library first and runs this.
set -eu
cd "$(dirname "$0")/../.."
root=$PWD
here=$root/bindings-c
out=$root/target/c-test
prefix=$out/prefix
make=${MAKE:-make}
warnings="-Wall -Wextra -pedantic -Werror"
examples="quickstart domains waiting clock"
tests="bad_calls bad_config bad_network bad_web structs life table busy client cluster prefork"
tests="$tests threads web vectors_calls vectors_config vectors_web"
passed=0
failed=0

rm -rf "$out"
mkdir -p "$out"
export PKG_CONFIG_PATH="$prefix/lib/pkgconfig"
export LD_LIBRARY_PATH="$prefix/lib"

# step TITLE COMMAND...: runs a command and prints its output if it fails. `set -e` has no effect in
# functions that are run like this, so they use &&.
step() {
    title=$1
    shift
    if (cd "$out" && "$@") >"$out/log" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: $title"
        sed 's/^/    /' "$out/log"
    fi
}

# --- installation

installs() {
    "$make" -s -C "$root" install PREFIX="$prefix" &&
        [ "$(readlink "$prefix/lib/libdthrottle.so")" = libdthrottle.so.0 ] &&
        "$make" -s -C "$root" install PREFIX=/opt/dt DESTDIR="$out/stage" &&
        grep -qx 'prefix=/opt/dt' "$out/stage/opt/dt/lib/pkgconfig/dthrottle.pc" &&
        [ "$(find "$out/stage" ! -type d | wc -l)" = 6 ] &&
        "$make" -s -C "$root" uninstall PREFIX=/opt/dt DESTDIR="$out/stage" &&
        [ "$(find "$out/stage" ! -type d | wc -l)" = 0 ]
}

one_version() {
    version=$(sed -n 's/^#define DTHROTTLE_VERSION "\(.*\)"$/\1/p' "$prefix/include/dthrottle.h") &&
        [ -n "$version" ] &&
        [ "$(pkg-config --modversion dthrottle)" = "$version" ] &&
        [ -f "$prefix/lib/libdthrottle.so.$version" ]
}

is_never_unloaded() {
    readelf -dW "$prefix/lib/libdthrottle.so" | tee dynamic &&
        grep -q 'SONAME.*\[libdthrottle\.so\.0\]' dynamic &&
        grep -q 'FLAGS_1.*NODELETE' dynamic
}

# Compares the prototypes of the header, the exports of the library, and the calls in tests/bad_*.c.
same_exports() {
    gcc -E -P "$prefix/include/dthrottle.h" | grep -o 'dthrottle_[a-z_]*(' | tr -d '(' |
        sort >prototypes &&
        nm -D --defined-only "$prefix/lib/libdthrottle.so" | awk '{print $3}' | sort >exports &&
        [ "$(wc -l <prototypes)" -ge 32 ] &&
        diff prototypes exports &&
        grep -oh 'dthrottle_[a-z_]*(' "$here"/tests/bad_*.[ch] | tr -d '(' | sort -u >called &&
        diff prototypes called
}

# Compares the binary interface with abi.txt. Also tests that a missing export, and a new field in the
# middle of a struct, are found.
same_abi() {
    abi() { "$here/tests/abi.sh" "$1" "$prefix/lib/libdthrottle.so" "$2"; } &&
        mkdir -p changed &&
        abi "$prefix/include/dthrottle.h" "$here/abi.txt" &&
        { cat "$here/abi.txt" && echo "export dthrottle_zzz"; } | LC_ALL=C sort >more &&
        ! abi "$prefix/include/dthrottle.h" more >told && grep -qx -e '- export dthrottle_zzz' told &&
        sed 's/^    uint64_t cost;/    uint64_t more;\n&/' "$prefix/include/dthrottle.h" \
            >changed/dthrottle.h &&
        ! abi changed/dthrottle.h "$here/abi.txt" >told &&
        grep -qx -e '- struct dthrottle_check_options_t.cost: uint64_t at 16, 8 bytes' told
}

# --- programs

# The expected output of an example is the comment at its end.
prints() {
    awk '/^\*\/$/{on = 0} on; /^\/\* prints:$/{on = 1}' "$here/examples/$1.c" >want &&
        [ -s want ] && shift && "$@" >got && diff want got
}

# run_program NAME COMMAND...: adds the arguments that the program needs.
run_program() {
    program=$1
    shift
    case $program in
        vectors_*) "$@" "$root/tests/vectors" ;;
        load) "$@" "$prefix/lib/libdthrottle.so.0" ;;
        client) "$@" "$root/target/debug/dthrottled" ;;
        *) case " $examples " in *" $program "*) prints "$program" "$@" ;; *) "$@" ;; esac ;;
    esac
}

# compile NAME OUTPUT FLAGS...
compile() {
    program=$1
    binary=$2
    shift 2
    source=$here/tests/$program.c
    [ -f "$source" ] || source=$here/examples/$program.c
    other=
    case $program in
        vectors_*) other=$(pkg-config --libs libcjson) ;;
        load) other=-ldl ;;
    esac
    # shellcheck disable=SC2046,SC2086 # lists of words
    gcc -std=c11 -g $warnings $(pkg-config --cflags dthrottle) "$source" -o "$binary" \
        "$@" -pthread $other
}

all_ways() {
    shared=$(pkg-config --libs dthrottle)
    static=$(pkg-config --libs --static dthrottle | sed 's/-ldthrottle/-l:libdthrottle.a/')
    for name in $examples $tests load; do
        libs=$shared
        [ "$name" = load ] && libs=
        # shellcheck disable=SC2086 # lists of words
        {
            step "$name compiles" compile "$name" "$name" $libs
            step "$name runs" run_program "$name" "./$name"
            step "$name runs under valgrind" run_program "$name" valgrind --quiet --error-exitcode=1 \
                --leak-check=full --errors-for-leak-kinds=definite,indirect,possible \
                "--suppressions=$here/tests/valgrind.supp" "./$name"
            step "$name compiles with sanitizers" compile "$name" "$name-asan" \
                -fsanitize=address,undefined -fno-sanitize-recover=all $libs
            step "$name runs with sanitizers" run_program "$name" "./$name-asan"
            if [ "$name" != load ]; then
                step "$name compiles with the static library" compile "$name" "$name-static" $static
                step "$name does not need the shared library" is_static "$name-static"
                step "$name runs with the static library" run_program "$name" "./$name-static"
            fi
            # cJSON, which the vectors need, has no static form in Debian.
            case $name in load | vectors_*) continue ;; esac
            step "$name compiles with -static" compile "$name" "$name-all-static" -static \
                $(pkg-config --libs --static dthrottle)
            step "$name with -static needs no shared library" needs_no_library "$name-all-static"
            step "$name runs with -static" run_program "$name" "./$name-all-static"
        }
    done
}

# Tests that the tools find mistakes.
controls() {
    # shellcheck disable=SC2046 # lists of words
    {
        step "control compiles" compile control control $(pkg-config --libs dthrottle)
        step "control compiles with sanitizers" compile control control-asan -fsanitize=address \
            $(pkg-config --libs dthrottle)
    }
    step "control without a mistake succeeds" ./control none
    step "control with sanitizers and without a mistake succeeds" ./control-asan none
    for mistake in leak overflow; do
        step "valgrind finds the $mistake" fails valgrind --quiet --error-exitcode=9 \
            --leak-check=full "--suppressions=$here/tests/valgrind.supp" ./control "$mistake"
        step "sanitizers find the $mistake" fails env ASAN_OPTIONS=exitcode=9 \
            ./control-asan "$mistake"
    done
}

# fails COMMAND...: succeeds if the tool found a mistake.
fails() {
    "$@"
    [ $? = 9 ]
}

# Without the tools, because this program replaces malloc, as the tools do.
no_allocation() {
    # shellcheck disable=SC2046 # lists of words
    compile allocation allocation $(pkg-config --libs dthrottle) && ./allocation
}

is_static() {
    readelf -dW "$1" >dynamic && ! grep 'NEEDED.*dthrottle' dynamic
}

needs_no_library() {
    readelf -dW "$1" >dynamic && ! grep 'NEEDED' dynamic
}

# -fsyntax-only, because -o /dev/null as root would replace the device.
standards() {
    echo '#include <dthrottle.h>' >"$out/header.c"
    for std in c99 c11 c17 c2x c++17; do
        compiler="gcc -x c"
        [ "$std" = c++17 ] && compiler="g++ -x c++"
        for source in "$out/header.c" "$here"/examples/*.c; do
            # shellcheck disable=SC2086 # lists of words
            step "$(basename "$source") compiles as $std" \
                $compiler -std=$std $warnings -fsyntax-only "-I$prefix/include" "$source"
        done
    done
}

from_cpp() {
    # shellcheck disable=SC2046,SC2086 # lists of words
    g++ -x c++ -std=c++17 $warnings "$here/examples/domains.c" -x none -o domains-cpp \
        $(pkg-config --cflags --libs dthrottle) && prints domains ./domains-cpp
}

# Builds a program from the checkout, without an installation.
from_checkout() {
    gcc "-I$root/include" "$here/examples/clock.c" -o clock-checkout "-L$root/target/release" \
        -ldthrottle && LD_LIBRARY_PATH=$root/target/release prints clock ./clock-checkout
}

# Runs the program and the commands of the chapter Usage of the README.
readme() {
    mkdir -p readme && cd readme &&
        awk '/^## /{usage = /Usage/} /^```/{to = ""}
             usage && /^```c$/{to = "hello.c"; next} usage && /^```sh$/{to = "commands"; next}
             to {print > to}' "$here/README.md" &&
        [ -s hello.c ] && [ -s commands ] && sh -e commands >got &&
        awk '/^```text$/{on = 1; next} /^```$/{on = 0} on' "$here/README.md" >want &&
        [ -s want ] && diff want got
}

step "install and uninstall copy and remove all files" installs
step "header, library and pkg-config have the same version" one_version
step "the library has a soname and nodelete" is_never_unloaded
step "every export has a prototype and a test with invalid arguments" same_exports
step "the binary interface equals abi.txt" same_abi
standards
all_ways
controls
step "a check allocates no memory" no_allocation
step "a program compiles as C++17 and runs" from_cpp
step "a program links with the checkout" from_checkout
step "the program of the README prints the text of the README" readme

echo "libdthrottle: $passed passed, $failed failed"
[ "$failed" = 0 ]
