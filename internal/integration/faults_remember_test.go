//go:build integration

package integration

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"testing"
)

// remembered is a result in a file, and the input that it is of.
type remembered struct {
	Rows        int64             `json:"rows"`
	Hash        string            `json:"hash"`
	Models      map[string]string `json:"models"`
	Counts      map[string]int64  `json:"counts"`
	Snapshots   map[string]string `json:"snapshots"`
	Calibrators []string          `json:"calibrators"`
	Alerts      []string          `json:"alerts"`
}

const resultVariable = "PLUMBLINE_FAULTS_RESULT"

// remember reads the result of an undisturbed run where one was stored.
func (s *suite) remember(t *testing.T) bool {
	t.Helper()
	file := os.Getenv(resultVariable)
	if file == "" {
		return false
	}
	b, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	var r remembered
	if err == nil {
		err = json.Unmarshal(b, &r)
	}
	if err != nil {
		t.Fatalf("%s: %v", resultVariable, err)
	}
	if r.Rows != s.input.total() {
		t.Fatalf("%s: %s is of %d rows, want %d", resultVariable, file, r.Rows, s.input.total())
	}
	s.want = result{hash: r.Hash, models: r.Models, counts: r.Counts, snapshots: r.Snapshots,
		calibrators: r.Calibrators, alerts: r.Alerts}
	t.Logf("undisturbed: the result of an earlier run is compared with, hash %s", r.Hash)
	return true
}

func (s *suite) store(t *testing.T) {
	t.Helper()
	file := os.Getenv(resultVariable)
	if file == "" || t.Failed() {
		return
	}
	w := s.want
	b, err := json.Marshal(remembered{s.input.total(), w.hash, w.models, w.counts, w.snapshots, w.calibrators,
		w.alerts})
	if err == nil {
		err = os.WriteFile(file, b, 0o600)
	}
	if err != nil {
		t.Errorf("%s: %v", resultVariable, err)
	}
}
