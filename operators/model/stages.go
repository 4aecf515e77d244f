package model

import (
	"github.com/plumbline/plumbline/operators/model/alarm"
	"github.com/plumbline/plumbline/operators/model/drift"
	"github.com/plumbline/plumbline/operators/model/rule"
	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/operators/model/window"
)

// namedStage is a stage with its name, which is the key of its state in a checkpoint.
type namedStage struct {
	name string
	stage.Stage
}

// stagesOf returns the table of stages, in the order in which they observe and close a pane. A new stage is a package
// and a line here. Windows come after drift, because their snapshots show drift's figures of the pane. Alarms come
// before rules in stage.Key.Alerts.
func stagesOf(cfg *Config, env *stage.Env) []namedStage {
	return []namedStage{
		{"drift", drift.New(env, cfg.Unlabelled)},
		{"window", window.New(env, window.Settings{Windows: cfg.Windows, ExtraBins: cfg.ExtraBins, CDFNu: cfg.CDFNu})},
		{"alarm", alarm.New(env, cfg.Alarm)},
		{"rule", rule.New(env, cfg.Rules)},
	}
}
