package finetune

import (
	"testing"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/operators/proving"
	"github.com/plumbline/plumbline/pipeline/record"
)

// TestClassesChangeWhileAHeadIsTried: what is saved after the change can be restored.
func TestClassesChangeWhileAHeadIsTried(t *testing.T) {
	env := &stage.Env{Pane: 10e9, Acc: acc.Config{}, Bins: 15}
	g := New(env, TriggerConfig{}, proving.Config{Shadow: true, NLLBound: 5, Alpha: .01})
	m := g.NewModel()
	v := &stage.Version{Model: "m", Name: "v1", K: 3}
	m.Add(v)
	p, err := g.newPairs(3)
	if err != nil {
		t.Fatal(err)
	}
	m.states["v1"].evaluators = []*evaluator{{number: 1, state: record.ShadowRunning, pairs: p}}
	m.states["v1"].number = 1
	v.K = 4 // stepper.changeClasses: v.K = k, then heads.Forget
	m.Forget("v1")
	b, err := m.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	again := g.NewModel()
	again.Add(&stage.Version{Model: "m", Name: "v1", K: 4})
	r := binenc.NewReader(b)
	if err := again.Restore(&r); err != nil {
		t.Errorf("the checkpoint after the change cannot be restored: %v", err)
	}
}
