package model

import (
	"github.com/plumbline/plumbline/operators/model/alarm"
	"github.com/plumbline/plumbline/operators/model/drift"
	"github.com/plumbline/plumbline/operators/model/rule"
	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/operators/model/window"
)

// namedStage is a stage under the name that keys its state in a checkpoint.
type namedStage struct {
	name string
	stage.Stage
}

// stagesOf is the table of stages, in the order in which they observe and close a pane. A new stage is a package and a
// line here. Windows come after drift, whose numbers of this pane they show; alarms come before rules in
// stage.Key.Alerts.
func stagesOf(cfg *ModelConfig, env *stage.Env) []namedStage {
	return []namedStage{
		{"drift", drift.New(env, cfg.Unlabelled)},
		{"window", window.New(env, window.Settings{Windows: cfg.Windows, ExtraBins: cfg.ExtraBins, CDFNu: cfg.CDFNu})},
		{"alarm", alarm.New(env, cfg.Alarm)},
		{"rule", rule.New(env, cfg.Rules)},
	}
}
