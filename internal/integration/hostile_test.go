//go:build integration

package integration

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// hostile holds the scenarios of TestHostile; each file of scenarios adds its own in init. What names one is
// "topic-what", as dead-letters-many.
var hostile = map[string]func(t *testing.T, r *attack){}

// attack is the line of a scenario in the table "Under attack".
type attack struct {
	Input   string // what the producer or the fault does
	Before  string // what it did to a deployment before it was mended, as it was measured then
	Lag     string // of the good model
	Exact   bool   // the good model's numbers are those of its rows alone
	RSS     int64  // the most bytes of the process
	Restart int    // restarts of tasks
	Letters int64  // bytes of dead letters
	Note    string
}

// TestHostile sends a deployment on a real broker what an attacker, a faulty producer or a lost directory would. Beside
// each a good model goes on, with exact numbers. PLUMBLINE_DOCS=1 rewrites bench/results/attack.md.
func TestHostile(t *testing.T) {
	var names []string
	for name := range hostile {
		names = append(names, name)
	}
	slices.Sort(names)
	var table strings.Builder
	table.WriteString("| scenario | input | before | good model's lag | exact | RSS MB | restarts " +
		"| dead letters, bytes | |\n" +
		"|---|---|---|---|---|---|---|---|---|\n")
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			var a attack
			hostile[name](t, &a)
			fmt.Fprintf(&table, "| %s | %s | %s | %s | %t | %d | %d | %d | %s |\n", name, a.Input, a.Before, a.Lag,
				a.Exact, a.RSS>>20, a.Restart, a.Letters, a.Note)
		})
	}
	t.Logf("table:\n%s", table.String())
	if !t.Failed() {
		writeSection(t, "attack", table.String())
	}
}
