package offline_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/internal/offline"
)

// TestCandidates: methods come in the order in which they are asked for, each once, and scaled where that can be.
func TestCandidates(t *testing.T) {
	for _, c := range []struct {
		choice offline.Choice
		want   string
	}{
		{offline.Choice{Method: "identity,temperature,identity", LossScaling: "off"}, "identity,temperature"},
		{offline.Choice{Method: "temperature", LossScaling: "both"}, "temperature,temperature+cls"},
		{offline.Choice{Method: "identity,temperature", LossScaling: "on"}, "identity,temperature+cls"},
	} {
		got, err := c.choice.Candidates()
		if err != nil || strings.Join(got, ",") != c.want {
			t.Errorf("%+v: got %v, %v, want %s", c.choice, got, err, c.want)
		}
	}
	got, err := offline.Choice{Method: "all", Skip: "identity", LossScaling: "off"}.Candidates()
	if err != nil || len(got) != len(offline.MethodNames())-1 || slices.Contains(got, "identity") {
		t.Errorf("all but the identity: got %v, %v", got, err)
	}
}

func TestCandidatesAreRefused(t *testing.T) {
	for _, c := range []struct {
		choice offline.Choice
		want   string
	}{
		{offline.Choice{Method: "temprature", LossScaling: "off"},
			`--method "temprature": unknown method; did you mean temperature?`},
		{offline.Choice{Method: "sbece", LossScaling: "off"}, "did you mean temperature_sbece?"},
		{offline.Choice{Method: "nothing-near", LossScaling: "off"}, "unknown method, allowed are all, identity, "},
		{offline.Choice{Method: "platt+cls", LossScaling: "off"}, "class-wise loss scaling is for temperature, "},
		{offline.Choice{Method: "identity", LossScaling: "some"}, `--loss-scaling "some": allowed are`},
		{offline.Choice{Method: "identity", LossScaling: "on"}, "--loss-scaling on: not for identity"},
		{offline.Choice{Method: "identity", Skip: "identity", LossScaling: "off"}, "--skip: needs --method all"},
	} {
		if _, err := c.choice.Candidates(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: got %v, want %s", c.choice, err, c.want)
		}
	}
}
