package pipeline

import (
	"context"
	"log/slog"
)

// firstRecord logs when a task has processed its first record: with the line about the restored checkpoint it tells how
// long the task was away.
type firstRecord struct {
	Source
	name string
	log  *slog.Logger
	last Record
	step int // 0: nothing handed out, 1: the task has the first record, 2: logged
}

// Next implements Source. Who asks for another record has processed the one before.
func (f *firstRecord) Next(ctx context.Context) (Record, error) {
	if f.step == 1 {
		f.step = 2
		f.log.Info("first record", "task", f.name, "topic", f.last.Topic, "offset", f.last.Offset, "at",
			Format(f.last.Time))
		f.last = Record{}
	}
	r, err := f.Source.Next(ctx)
	if f.step == 0 && err == nil && !r.Idle {
		f.step, f.last = 1, Record{Topic: r.Topic, Offset: r.Offset, Time: r.Time}
	}
	return r, err
}
