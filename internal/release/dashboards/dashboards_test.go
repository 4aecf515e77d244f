package main

import (
	"bytes"
	"os"
	"testing"
)

// TestDashboardsAreCurrent holds deploy/grafana against the table; `make dashboards` writes it.
func TestDashboardsAreCurrent(t *testing.T) {
	for _, d := range dashboards {
		want, err := d.json()
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile("../../../deploy/grafana/" + d.name + ".json")
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s.json is not current: make dashboards", d.name)
		}
	}
}
