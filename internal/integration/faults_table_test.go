//go:build integration

package integration

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// tableRow is a scenario in bench/results/faults.md.
type tableRow struct {
	Rows     int64    `json:"rows"`
	Events   []string `json:"events"` // what disturbed it
	Seconds  float64  `json:"seconds"`
	Drain    float64  `json:"drain_seconds"` // of them after the last row was sent
	Equal    bool     `json:"equal"`
	Finished string   `json:"finished"`
}

// did notes a disturbance, and logs it.
func (d *deployment) did(format string, args ...any) {
	d.t.Helper()
	what := fmt.Sprintf(format, args...)
	d.events = append(d.events, what)
	d.t.Logf("%s, %.0f s after the beginning", what, time.Since(d.began).Seconds())
}

// tabulate adds a scenario that has ended to the table, and writes that where it is asked for. With
// PLUMBLINE_FAULTS_RESULT the rows of other runs stay in it.
func (s *suite) tabulate(t *testing.T, d *deployment) {
	t.Helper()
	name := strings.TrimPrefix(t.Name(), "TestFaults/")
	s.table[name] = tableRow{
		Rows:     d.rows,
		Events:   d.events,
		Seconds:  d.took.Seconds(),
		Drain:    d.drained.Seconds(),
		Equal:    !t.Failed() && d.took > 0,
		Finished: time.Now().UTC().Format(time.DateTime),
	}
	if file := os.Getenv(resultVariable); file != "" {
		b, err := json.MarshalIndent(s.table, "", " ")
		if err == nil {
			err = os.WriteFile(file+".table", b, 0o600)
		}
		if err != nil {
			t.Errorf("%s: %v", resultVariable, err)
		}
	}
}

// oldTable reads the rows of other runs.
func (s *suite) oldTable(t *testing.T) {
	t.Helper()
	s.table = map[string]tableRow{}
	file := os.Getenv(resultVariable)
	if file == "" {
		return
	}
	b, err := os.ReadFile(file + ".table")
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err == nil {
		err = json.Unmarshal(b, &s.table)
	}
	if err != nil {
		t.Fatalf("%s: %v", resultVariable, err)
	}
}

// publish writes the table in bench/results/faults.md.
func (s *suite) publish(t *testing.T) {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "%s; %s, %d cores shared with the brokers and the sender; "+
		"%d brokers with replication %d, %d worker processes.\n\n",
		time.Now().UTC().Format(time.DateOnly), cpuName(), runtime.NumCPU(), clusterBrokers, clusterBrokers,
		faultProcesses)
	b.WriteString("| scenario | rows | disturbed by | seconds to the end | of them after the last row was sent " +
		"| equal |\n|---|---|---|---|---|---|\n")
	names := slices.Sorted(maps.Keys(s.table))
	slices.SortStableFunc(names, func(a, b string) int {
		return strings.Compare(s.table[a].Finished, s.table[b].Finished)
	})
	for _, name := range names {
		r, equal := s.table[name], "yes"
		if !r.Equal {
			equal = "**no**"
		}
		fmt.Fprintf(&b, "| %s | %d | %s | %.0f | %.0f | %s |\n", name, r.Rows, strings.Join(counted(r.Events), ", "),
			r.Seconds, r.Drain, equal)
	}
	t.Logf("table:\n%s", b.String())
	writeSection(t, "faults", b.String())
}

// counted joins equal texts.
func counted(events []string) (out []string) {
	n := map[string]int{}
	for _, e := range events {
		if n[e]++; n[e] == 1 {
			out = append(out, e)
		}
	}
	for i, e := range out {
		if n[e] > 1 {
			out[i] = fmt.Sprintf("%d × %s", n[e], e)
		}
	}
	return out
}
