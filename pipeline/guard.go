package pipeline

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
)

// Guard knows which record a task is at, and which records have ended it too often. It is called by the task's
// goroutine alone, but for Saved.
type Guard interface {
	// Pass calls over where the task must skip the record, with the reason. It returns whether over did so.
	Pass(r Record, over func(why string) bool) bool
	// Taking tells that the task begins with a record. A process that dies before Taken died of it, perhaps.
	Taking(r Record)
	Taken()
	// Saved tells that everything before these offsets is in a durable checkpoint.
	Saved(next map[Input]int64)
}

// unguarded is the guard of a task that has none.
type unguarded struct{}

func (unguarded) Pass(Record, func(string) bool) bool { return false }
func (unguarded) Taking(Record)                       {}
func (unguarded) Taken()                              {}
func (unguarded) Saved(map[Input]int64)               {}

// guarded is g, which may be nil.
func guarded(g Guard) Guard {
	if g == nil {
		return unguarded{}
	}
	return g
}

// ReasonPoison is the reason of the dead letter of a record that was skipped.
const ReasonPoison = "poison"

// TakeError is the error of a task that took a record. It names the record's place, which Err need not.
type TakeError struct {
	Input     Input
	Topic     string
	Partition int32
	Offset    int64
	Err       error
}

func (e *TakeError) Error() string { return e.Err.Error() }
func (e *TakeError) Unwrap() error { return e.Err }

// PanicError is a panic that became an error.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Unwrap is the value where that is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// Caught makes a panic the error of the function that defers it.
func Caught(err *error) {
	if p := recover(); p != nil {
		*err = &PanicError{Value: p, Stack: debug.Stack()}
	}
}

// taker is what a guarded record goes to.
type taker interface {
	Take(ctx context.Context, r Record) error
}

type takerFunc func(r Record) error

func (f takerFunc) Take(_ context.Context, r Record) error { return f(r) }

// guardedTake hands a record to a task, and tells the guard. A panic becomes an error.
func guardedTake(ctx context.Context, g Guard, t taker, r *Record) error {
	if r.Idle || r.Paused { // a notice, which cannot be skipped
		return t.Take(ctx, *r)
	}
	g.Taking(*r)
	err := caughtTake(ctx, t, r)
	if err == nil {
		g.Taken()
		return nil
	}
	if p := (*PanicError)(nil); errors.As(err, &p) {
		err = fmt.Errorf("%s partition %d offset %d: %w", r.Topic, r.Partition, r.Offset, p)
	}
	return &TakeError{Input: r.Input, Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Err: err}
}

func caughtTake(ctx context.Context, t taker, r *Record) (err error) {
	defer Caught(&err)
	return t.Take(ctx, *r)
}
