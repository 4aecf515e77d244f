package engine

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/internal/control"
	"github.com/plumbline/plumbline/internal/engine/decisionlog"
	"github.com/plumbline/plumbline/operators/model/refit"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
	"github.com/plumbline/plumbline/web"
)

// OrderTaker writes people's orders about calibrators to the panes topic, keyed by model. The model task, here or in
// another process, carries them out in the order of that log.
type OrderTaker struct {
	*Engine
	Sink pipeline.Sink
	Scan scanTopic // searches a topic; nil: there are no topics
}

// ErrUnasked means that a lookup failed; the order may be valid.
var ErrUnasked = errors.New("the history could not be asked")

// Order implements web.Orders. A refused order is written to the history with the reason.
func (t OrderTaker) Order(ctx context.Context, w web.Order) (any, error) {
	o := &pipeline.Order{ID: pipeline.NewOrderID(), Action: w.Action, Model: w.Model, Version: w.Version,
		Revision: w.Revision, Classes: w.Classes, Calibrator: w.Calibrator, By: w.By, Why: w.Why}
	if o.Action != pipeline.ActionPublish {
		o.Calibrator = nil
	}
	id := hex.EncodeToString(o.ID[:])
	if err := t.complete(ctx, o); err != nil {
		if errors.Is(err, ErrUnasked) {
			return nil, err
		}
		t.refused(ctx, record.Order{Kind: record.CalibratorOrder, ID: id, Action: o.Action, Model: o.Model,
			Version: o.Version, Revision: o.Revision, By: o.By, Why: o.Why}, err)
		return nil, fmt.Errorf("%w: %w", web.ErrOrder, err)
	}
	m := pipeline.Message{Stream: pipeline.StreamPanes, Partition: -1, Key: []byte(o.Model),
		Value: pipeline.AppendOrder(nil, o)}
	if err := t.Sink.Write(ctx, []pipeline.Message{m}); err != nil {
		return nil, err
	}
	return control.OrderAnswer{ID: id, Action: o.Action, Model: o.Model, Version: o.Version, By: o.By, Why: o.Why}, nil
}

// complete fills in what the order leaves out, and refuses what is known to be wrong.
func (t OrderTaker) complete(ctx context.Context, o *pipeline.Order) error {
	if err := o.Check(); err != nil {
		return err
	}
	if strings.TrimSpace(o.Why) == "" {
		return fmt.Errorf("%s: why: must not be empty", o.Action)
	}
	if o.Version == "" {
		versions, err := t.versions(ctx, o.Model)
		if err != nil {
			return err
		}
		if len(versions) == 0 {
			return fmt.Errorf("version: must be named, nothing is known of model %q here", o.Model)
		}
		if len(versions) > 1 {
			return fmt.Errorf("version: must be named, model %q has %s here", o.Model, strings.Join(versions, ", "))
		}
		o.Version = versions[0]
	}
	if k := declaredClasses(&t.Config)[o.Model]; o.Action == pipeline.ActionClasses && k > 0 && k != o.Classes {
		return fmt.Errorf("the configuration declares K = %d for model %s (models): change it there", k, o.Model)
	}
	if o.Action == pipeline.ActionPublish {
		if _, err := calibrator.Decode(o.Calibrator); err != nil {
			return err
		}
		return refit.CheckSize(o.Calibrator, refit.MaxCalibratorBytes(t.Config.Kafka.MessageMax))
	}
	if o.Revision == 0 || o.Action == pipeline.ActionUnpin {
		return nil
	}
	var err error
	o.Calibrator, err = t.revision(ctx, o.Model, o.Version, o.Revision)
	return err
}

// versions returns the versions of a model that are known in this process or, failing that, in the database.
func (t OrderTaker) versions(ctx context.Context, model string) ([]string, error) {
	out := t.knownVersions(model)
	if len(out) > 0 || t.Past == nil {
		return out, nil
	}
	out, err := t.Past.Store.Versions(ctx, model)
	if err != nil {
		return nil, fmt.Errorf("%w: versions of %s: %w", ErrUnasked, model, err)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// refused writes a refused order about a calibrator to the decisions topic: who gave it, why, and why it was refused.
// If writing fails, the log has it; the order is refused anyway.
func (t OrderTaker) refused(ctx context.Context, o record.Order, reason error) {
	o.Schema, o.At, o.Refused = 1, record.Now(), reason.Error()
	t.Log.Warn("order refused", "action", o.Action, "model", o.Model, "version", o.Version, "revision", o.Revision,
		"by", o.By, "why", o.Why, "reason", o.Refused)
	if t.Config.Topics.Decisions == "" || o.Model == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, decisionlog.RecordTime)
	defer cancel()
	if err := decisionlog.WriteOrder(ctx, t.Sink, o); err != nil {
		t.Log.Warn("the history does not have a refused order", "id", o.ID, "err", err)
	}
}
