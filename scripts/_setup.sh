# Sourced by the scripts beside it: makes .venv and keeps it in step with pyproject.toml. Talks on stderr only.
#
# `ensure_venv ROOT FLAVOUR` with FLAVOUR `run` or `dev`. A stamp in the environment says for which pyproject.toml, checkout
# and Python it was finished. The stamp is written last, so an interrupted build is stale and is built again; it is read
# without starting another program beside sha256sum, because it is on the path of every command.

say() { printf '%s\n' "$*" >&2; }
die() { # REFERENCE SENTENCE HINT CODE
    printf 'error: %s\n  %s\n\nhint: %s\n' "$1" "$2" "$3" >&2
    exit "$4"
}

pyproject_digest() { # ROOT
    local line
    line=$(sha256sum "$1/pyproject.toml") || die no-pyproject "cannot read $1/pyproject.toml" "run this in a whole checkout" 3
    printf '%s' "${line%% *}"
}

# Whether .venv was finished for this checkout and a Python that is still there; sets `stamp`.
is_whole() { # ROOT
    local venv=$1/.venv
    stamp=()
    [[ -x $venv/bin/python && -f $venv/accel-env.stamp ]] || return 1
    mapfile -t stamp <"$venv/accel-env.stamp"
    # The link must still lead to the recorded interpreter: a system upgrade moves it to another X.Y.
    [[ ${#stamp[@]} == 4 && ${stamp[3]} == "$1" && $venv/bin/python -ef ${stamp[2]} ]]
}

# ... and for this pyproject.toml and flavour. An environment with the development extra runs the program as well.
is_fresh() { # ROOT FLAVOUR DIGEST
    is_whole "$1" && [[ ${stamp[0]} == "$3" && (${stamp[1]} == "$2" || ${stamp[1]} == dev) ]]
}

# A Python of at least 3.10, from PYTHON or PATH.
find_python() {
    local name
    for name in ${PYTHON:+"$PYTHON"} python3 python3.14 python3.13 python3.12 python3.11 python3.10 python; do
        if command -v "$name" >/dev/null 2>&1 &&
            "$name" -c 'import sys; sys.exit(sys.version_info < (3, 10))' >/dev/null 2>&1; then
            printf '%s' "$name"
            return
        fi
    done
    die no-python "no Python 3.10 or newer was found on PATH" "install python3, or name one: PYTHON=/path/to/python3 $0" 3
}

# A new environment, empty but for pip. `--clear` also heals one that was left half-made.
make_venv() { # VENV
    local python log
    python=$(find_python) || exit $?
    log=$(mktemp) || die no-scratch "cannot make a temporary file" "check the free space in ${TMPDIR:-/tmp}" 5
    if ! "$python" -m venv --clear "$1" >"$log" 2>&1; then
        cat "$log" >&2
        rm -f "$log"
        "$python" -c 'import ensurepip, venv' >/dev/null 2>&1 ||
            die no-venv-module "$python has no venv module" "on Debian or Ubuntu: apt-get install python3-venv" 3
        die no-venv "$python could not make $1" "see the lines above" 3
    fi
    rm -f "$log"
}

build_venv() { # ROOT FLAVOUR DIGEST
    local root=$1 flavour=$2 venv=$1/.venv log=$1/.venv/accel-env.log target=$1 whole=
    say "accel-env: setting up $venv ($flavour); this takes a minute once ..."
    # A finished environment of this checkout only misses what pyproject.toml gained; anything else starts anew.
    is_whole "$root" && whole=1
    rm -f "$venv/accel-env.stamp"
    [[ $whole ]] || make_venv "$venv"
    [[ $flavour == dev ]] && target="$root[dev]"
    if ! "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-input --retries 2 \
        --editable "$target" >"$log" 2>&1; then
        tail -n 15 "$log" >&2
        die no-install "pip could not install accel-env and what it needs into $venv" \
            "check that this machine reaches PyPI or your mirror (pip config list), then run it again" 5
    fi
    # Like pip does for what it installs: start-up is a budget, also where PYTHONDONTWRITEBYTECODE is set.
    "$venv/bin/python" -m compileall -q "$root/resolver/accel_env" >/dev/null 2>&1 || true
    printf '%s\n' "$3" "$flavour" "$(readlink -f "$venv/bin/python")" "$root" >"$venv/accel-env.stamp.new"
    mv -f "$venv/accel-env.stamp.new" "$venv/accel-env.stamp"
}

ensure_venv() { # ROOT FLAVOUR
    local root=$1 flavour=$2 digest
    digest=$(pyproject_digest "$root") || exit $?
    is_fresh "$root" "$flavour" "$digest" && return
    [[ -w $root ]] || die read-only "cannot write $root/.venv" "use a checkout that you own, or: pipx install $root" 3
    # One builder at a time, by a lock on the checkout's own folder; whoever waited looks again.
    exec 9<"$root"
    if command -v flock >/dev/null 2>&1 && ! flock -n 9; then
        say "accel-env: another process is setting up $root/.venv; waiting ..."
        flock 9
    fi
    is_fresh "$root" "$flavour" "$digest" || build_venv "$root" "$flavour" "$digest"
    exec 9<&-
}
