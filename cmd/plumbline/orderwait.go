package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/plumbline/plumbline/internal/control"
	"github.com/plumbline/plumbline/internal/engine"
	"github.com/plumbline/plumbline/pipeline/record"
	"github.com/plumbline/plumbline/sinks/registry"
)

// decisions are the newest decisions about a model's calibrators, oldest first, as records.
func (f *orderFlags) decisions(cmd *cobra.Command, model string) ([]json.RawMessage, error) {
	var a struct {
		Calibrators []json.RawMessage `json:"calibrators"`
	}
	err := f.ask(cmd, control.Request{Method: http.MethodGet, Path: "calibrators", Query: url.Values{"model": {model}, "limit": {"200"}}}, &a)
	return a.Calibrators, err
}

// decided is what had been decided before an order.
func (f *orderFlags) decided(cmd *cobra.Command, model string) (map[string]bool, error) {
	records, err := f.decisions(cmd, model)
	before := map[string]bool{}
	for _, r := range records {
		before[string(r)] = true
	}
	return before, err
}

// await waits until the model task has decided about an order: a decision of the same person for the same reason that was not there
// before. A refusal is an error.
func (f *orderFlags) await(cmd *cobra.Command, a *engine.OrderAnswer, before map[string]bool) error {
	const pause = 200 * time.Millisecond
	for deadline := time.Now().Add(f.wait); ; {
		records, err := f.decisions(cmd, a.Model)
		if err != nil {
			return fmt.Errorf("%s of %s/%s (order %s) is on its way, and nobody says what came of it: %w", a.Action, a.Model, a.Version, a.ID, err)
		}
		for _, r := range records {
			var c record.Calibrator
			if before[string(r)] || json.Unmarshal(r, &c) != nil || c.Version != a.Version || c.By != a.By || c.Why != a.Why || !strings.Contains(" "+c.Outcome, " "+a.Action+" by ") {
				continue
			}
			if registry.Refused(&c) {
				return fmt.Errorf("%s of %s/%s (order %s): %s", a.Action, a.Model, a.Version, a.ID, c.Outcome)
			}
			if jsonOutput(cmd) {
				return printJSON(cmd, r)
			}
			printf(cmd, "%s/%s: %s, revision %d from %s on\n", a.Model, a.Version, c.Outcome, c.Revision, c.EffectiveFrom)
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s of %s/%s (order %s) is on its way, and no decision about it has come within %s", a.Action, a.Model, a.Version, a.ID, f.wait)
		}
		time.Sleep(pause)
	}
}
