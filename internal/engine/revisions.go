package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/pipeline/record"
)

// searchTime bounds the search for a revision: HTTP answers must be written within a minute.
const searchTime = 45 * time.Second

// scanTopic passes take the present records of a key in a topic, oldest first (deployment.ScanTopics).
type scanTopic func(ctx context.Context, topic, key string, take func(value []byte)) error

// foundRevisions collects the calibrators of a model version by revision, the newest record of each.
type foundRevisions struct {
	model, version string
	wanted         int
	known          map[int]bool
	calibrator     []byte
}

// take adds a record.
func (f *foundRevisions) take(c *record.Calibrator) {
	if c.Model != f.model || c.Version != f.version || !c.Published || c.Stage == record.StageCanary ||
		len(c.Calibrator) == 0 {
		return
	}
	f.known[c.Revision] = true
	if c.Revision == f.wanted {
		f.calibrator = c.Calibrator
	}
}

// revision is the calibrator of a revision that was in force, wherever it is known: in this process, in the database,
// or on the topics of calibrators and decisions. The error names the revision and those that there are; where a place
// could not be asked it wraps errUnasked.
func (t OrderTaker) revision(ctx context.Context, model, version string, revision int) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, searchTime)
	defer cancel()
	f := &foundRevisions{model: model, version: version, wanted: revision, known: map[int]bool{}}
	var failed []error
	for _, look := range []func(context.Context, *foundRevisions) error{t.inMemory, t.inDatabase, t.onTopics} {
		if err := look(ctx, f); err != nil {
			failed = append(failed, err)
		}
		if f.calibrator == nil {
			continue
		}
		if _, err := calibrator.Decode(f.calibrator); err != nil {
			return nil, fmt.Errorf("revision %d of %s/%s: %w", revision, model, version, err)
		}
		return f.calibrator, nil
	}
	if len(failed) > 0 {
		return nil, fmt.Errorf("%w: revision %d of %s/%s: %w", ErrUnasked, revision, model, version,
			errors.Join(failed...))
	}
	if len(f.known) == 0 {
		return nil, fmt.Errorf("revision %d of %s/%s is not in the history, which has none: publish it from a file",
			revision, model, version)
	}
	return nil, fmt.Errorf("revision %d of %s/%s is not in the history, allowed are %s: publish it from a file",
		revision, model, version, Ranges(slices.Sorted(maps.Keys(f.known))))
}

func (t OrderTaker) inMemory(_ context.Context, f *foundRevisions) error {
	for _, c := range t.History.Calibrators(f.model, f.version, 0) {
		f.take(&c)
	}
	return nil
}

func (t OrderTaker) inDatabase(ctx context.Context, f *foundRevisions) error {
	if t.Past == nil {
		return nil
	}
	body, ok, err := t.Past.Store.Published(ctx, f.model, f.version, f.wanted)
	if err != nil {
		return err
	}
	if ok {
		var c record.Calibrator
		if err := json.Unmarshal(body, &c); err != nil {
			return fmt.Errorf("history: revision %d: %w", f.wanted, err)
		}
		f.take(&c)
		return nil
	}
	known, err := t.Past.Store.Revisions(ctx, f.model, f.version)
	for _, n := range known {
		f.known[n] = true
	}
	return err
}

// onTopics searches the compacted topic, and the decisions topic if it keeps everything.
func (t OrderTaker) onTopics(ctx context.Context, f *foundRevisions) error {
	if t.Scan == nil {
		return nil
	}
	err := t.Scan(ctx, t.Config.Topics.Calibrators, f.model+"/"+f.version, func(value []byte) {
		var c record.Calibrator
		if json.Unmarshal(value, &c) == nil {
			f.take(&c)
		}
	})
	if err != nil || f.calibrator != nil || t.Config.Topics.Decisions == "" {
		return err
	}
	return t.Scan(ctx, t.Config.Topics.Decisions, f.model, func(value []byte) {
		var d record.Decision
		var c record.Calibrator
		if json.Unmarshal(value, &d) == nil && d.Kind == record.DecisionCalibrator && d.Version == f.version &&
			json.Unmarshal(d.Record, &c) == nil {
			f.take(&c)
		}
	})
}

// Ranges writes ascending numbers as "1 to 5, 7".
func Ranges(n []int) string {
	var out []string
	for i := 0; i < len(n); {
		j := i
		for j+1 < len(n) && n[j+1] == n[j]+1 {
			j++
		}
		one := strconv.Itoa(n[i])
		if j > i {
			one += " to " + strconv.Itoa(n[j])
		}
		out = append(out, one)
		i = j + 1
	}
	return strings.Join(out, ", ")
}
