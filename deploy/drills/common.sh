# What the drills share. A drill breaks one thing on a deployment that you name, looks whether plumbline says what it should,
# mends the thing, and looks whether plumbline goes on with nothing lost. Use a test deployment first.
#
#   URL=http://127.0.0.1:8080   a process, its page and /metrics
#   WAIT=180                    seconds that each expectation has
set -euo pipefail
URL=${URL:-http://127.0.0.1:8080}
WAIT=${WAIT:-180}

say() { printf '%s  %s\n' "$(date +%T)" "$*"; }
need() { [[ -n ${!1:-} ]] || { echo "$0: $1 must be set: $2" >&2; exit 2; }; }

# metric NAME prints the largest value of a metric, nothing where it is absent.
metric() { curl -sf "$URL/metrics" | awk -v n="plumbline_$1" '$1 == n || index($1, n "{") == 1 {if (!some || $2 > most) most = $2; some = 1} END {if (some) printf "%d\n", most}'; }
rows() { curl -sf "$URL/metrics" | awk 'index($1, "plumbline_events_total{event=\"rows\"") == 1 {n += $2} END {printf "%d\n", n}'; }
ready() { curl -sf "$URL/-/ready" >/dev/null; }
alive() { curl -sf "$URL/-/healthy" >/dev/null; }
silent() { ! alive; }
not_ready() { ! ready; }

# expect TEXT COMMAND… waits until the command succeeds.
expect() {
	local text=$1 begin=$SECONDS
	shift
	until "$@" 2>/dev/null; do
		if ((SECONDS - begin > WAIT)); then
			say "NOT SO after $WAIT s: $text"
			curl -s "$URL/-/ready" | head -c 600 || true
			exit 1
		fi
		sleep 1
	done
	say "$text (after $((SECONDS - begin)) s)"
}

more_rows() { (($(rows) > $1)); }
all_accounted() { [[ $(metric rows_unaccounted) == 0 && $(metric task_failing) == 0 ]]; }
