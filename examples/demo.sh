#!/bin/sh
# The demonstration behind `make demo`: searches scikit-learn's digits from scratch, then prints the front.
# Run it from the project's folder, with the environment's bin folder first on PATH. It owns demo.db and
# demo.db.artifacts beside it, and begins each time with new ones; an unfinished run is not continued.
set -eu
cd "$(dirname "$0")/.."

export HF_HUB_OFFLINE=1  # no baseline begins from weights of the network: the same demonstration everywhere
database=demo.db
marker="$database.artifacts/.made-by-demo"

if [ -e "$database" ]; then
    if [ ! -e "$marker" ]; then
        echo "demo: ./$database was not made by this demonstration; move it away first" >&2
        exit 1
    fi
    if paretovit status digits --json --db "$database" 2>/dev/null | grep -Eq '"state": *"(running|draining)"'; then
        echo "demo: a demonstration is running already in this folder; wait for it, or end it with Ctrl-C" >&2
        exit 1
    fi
    rm -rf "$database" "$database-wal" "$database-shm" "$database.artifacts"
fi
mkdir -p "$database.artifacts"
: > "$marker"

paretovit run examples/digits.yaml --db "$database"

echo
echo "Open the report in a browser. Then look further:"
[ ! -e .venv/bin/activate ] || echo "    . .venv/bin/activate"
echo "    paretovit status digits --db $database"
echo "    paretovit front digits --all --db $database"
echo "    paretovit show digits NUMBER --db $database"
echo "    paretovit dashboard --db $database"
