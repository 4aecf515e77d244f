package attempts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/plumbline/plumbline/pipeline"
)

var (
	quiet = slog.New(slog.DiscardHandler)
	shard = ID{"shard", 3}
)

// record is a record of the logits topic; those with even offsets are of the labels topic.
func record(offset int64) pipeline.Record {
	if offset%2 == 0 {
		return pipeline.Record{Input: pipeline.Labels, Topic: "labels", Partition: 3, Offset: offset}
	}
	return pipeline.Record{Input: pipeline.Logits, Topic: "logits", Partition: 3, Offset: offset}
}

// ended is the error of a task that a record has ended.
func ended(offset int64, err error) error {
	return fmt.Errorf("shard-00003: %w", &pipeline.TakeError{Topic: "logits", Partition: 3, Offset: offset, Err: err})
}

// attempt is one attempt of a task that reads from offset 0 to 9 and saves a checkpoint there. It returns the records
// that were skipped, and an error at those that fail names.
func attempt(g *Guard, fail func(offset int64) error) (passed []int64, err error) {
	for o := range int64(10) {
		r := record(o)
		if g.Pass(r, func(string) bool { passed = append(passed, o); return true }) {
			continue
		}
		g.Taking(r)
		if err := fail(o); err != nil {
			return passed, ended(o, err)
		}
		g.Taken()
	}
	g.Saved(map[pipeline.Input]int64{pipeline.Logits: 10, pipeline.Labels: 10})
	return passed, nil
}

// TestRecordIsSkipped: a record that ends its task three times in a row is skipped, and forgotten once a
// checkpoint holds what comes after it. Errors of the disk are nobody's fault.
func TestRecordIsSkipped(t *testing.T) {
	for name, c := range map[string]struct {
		err   error
		after int
		want  []int // attempts at which the record was skipped
	}{
		"a panic":             {&pipeline.PanicError{Value: "no"}, 3, []int{4}},
		"an error":            {errors.New("no"), 2, []int{3}},
		"never":               {errors.New("no"), 0, nil},
		"a full disk":         {&os.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}, 3, nil},
		"a panic with errno":  {&pipeline.PanicError{Value: syscall.EINVAL}, 3, []int{4}},
		"another process has": {pipeline.ErrFenced, 3, nil},
	} {
		for _, dir := range []string{"", t.TempDir()} {
			synctest.Test(t, func(t *testing.T) {
				tasks := New(Config{SkipAfter: c.after, Dir: dir, Log: quiet})
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
				defer cancel()
				n := 0
				var at []int
				_ = tasks.Run(ctx, shard, func(_ context.Context, g *Guard) error {
					n++
					passed, err := attempt(g, func(o int64) error {
						if o == 5 {
							return c.err
						}
						return nil
					})
					if len(passed) > 0 {
						at = append(at, n)
					}
					return err
				})
				if fmt.Sprint(at) != fmt.Sprint(c.want) {
					t.Errorf("%s, dir %q: skipped at attempts %v of %d, want %v", name, dir, at, n, c.want)
				}
				if g := tasks.guard(shard); len(c.want) > 0 && g.note.Record != nil {
					t.Errorf("%s: still in trouble: %+v", name, g.note)
				}
			})
		}
	}
}

// TestProcessThatDies: the record of which the process dies is known to the next one, and skipped at last: the first
// records of a topic too, and with a cause that takes the most room.
func TestProcessThatDies(t *testing.T) {
	for _, at := range []int64{0, 1, 5} {
		dir := t.TempDir()
		for n := range 5 {
			tasks := New(Config{SkipAfter: 3, Dir: dir, Log: quiet}) // a new process
			g := tasks.guard(shard)
			if n == 0 {
				g.note.Issue = Issue{Record: &position{}, Times: 1, Cause: strings.Repeat("\x01", maxCause)}
				g.write()
			}
			died := false
			passed, err := attempt(g, func(o int64) error {
				if died = o == at; died {
					return errors.New("dead") // the guard hears of nothing
				}
				return nil
			})
			if died {
				_ = g.file.Close()
			}
			if skips := n == 3; died == skips || skips != (len(passed) > 0) {
				t.Errorf("record %d, start %d: died %t, skipped %v, %v", at, n, died, passed, err)
			}
			if n == 3 {
				break
			}
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("record %d: %d files left, %v, want none", at, len(left), err)
		}
	}
}

// TestKilledElsewhere: a process that is killed between two records, or at others, has no record to skip.
func TestKilledElsewhere(t *testing.T) {
	dir := t.TempDir()
	for n := range int64(9) {
		g := New(Config{SkipAfter: 2, Dir: dir, Log: quiet}).guard(shard)
		for o := range n % 3 {
			if g.Pass(record(o), func(string) bool { return true }) {
				t.Fatalf("start %d: record %d was skipped", n, o)
			}
			g.Taking(record(o))
			if o < n%3-1 || n%2 == 0 { // or it dies in the last
				g.Taken()
			}
		}
		_ = g.file.Close()
	}
}

// TestKilledWhileWaiting: a process that is killed again and again while it waits after one and the same record does
// not blame it.
func TestKilledWhileWaiting(t *testing.T) {
	dir := t.TempDir()
	for n := range 5 {
		synctest.Test(t, func(t *testing.T) {
			g := New(Config{SkipAfter: 2, Dir: dir, Log: quiet}).guard(shard)
			for o := range int64(3) {
				if g.Pass(record(o), func(string) bool { return true }) {
					t.Fatalf("start %d: record %d was skipped", n, o)
				}
				g.Taking(record(o))
				g.Taken()
			}
			time.Sleep(2 * restAfter)
			_ = g.file.Close()
		})
	}
}

// TestMoreSourcesThanANoteHolds: a task of so many sources that they cannot be noted blames no record when its process
// is killed, rather than the last one that could be.
func TestMoreSourcesThanANoteHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		g := New(Config{SkipAfter: 2, Dir: dir, Log: quiet}).guard(shard)
		for p := range int32(maxNote / 32) {
			r := record(1)
			r.Partition = p
			g.Taking(r)
			g.Taken()
		}
		time.Sleep(2 * restAfter)
		_ = g.file.Close() // killed
		if next := New(Config{SkipAfter: 2, Dir: dir, Log: quiet}).guard(shard); next.note.Record != nil {
			t.Errorf("blamed is %+v", *next.note.Record)
		}
	})
}

// TestPauses: pauses double up to a minute and begin anew after progress; what only a person can mend waits a minute at
// once. The log has the first failure and then one a minute with the count of the others.
func TestPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		tasks := New(Config{SkipAfter: 3, Log: slog.New(slog.NewTextHandler(&out, nil))})
		ctx, cancel := context.WithCancel(t.Context())
		var pauses []string
		last := time.Now()
		err := tasks.Run(ctx, shard, func(context.Context, *Guard) error {
			pauses = append(pauses, time.Since(last).String())
			last = time.Now()
			switch len(pauses) {
			case 9:
				tasks.saved(shard)
			case 11:
				return Lasting(pipeline.ErrUnusable)
			case 12:
				cancel()
				return nil
			}
			f, before := tasks.Failing(), len(pauses)-1
			if before > 0 && before < 8 && (len(f) != 1 || f[0].Times != before) {
				t.Errorf("after %d failures: %v", before, f)
			}
			return fmt.Errorf("save checkpoint %d: disk full", len(pauses))
		})
		if want := "[0s 1s 2s 4s 8s 16s 32s 1m0s 1m0s 1s 2s 1m0s]"; fmt.Sprint(pauses) != want || err != nil {
			t.Errorf("pauses %v, %v, want %s", pauses, err, want)
		}
		if n := strings.Count(out.String(), "task failed"); n < 3 || n > 5 {
			t.Errorf("%d log lines of 11 failures in four minutes:\n%s", n, out.String())
		}
		if !strings.Contains(out.String(), "not_logged=5") || len(tasks.Failing()) > 0 || tasks.Totals()[shard] != 11 {
			t.Errorf("failing %v, totals %v, log\n%s", tasks.Failing(), tasks.Totals(), out.String())
		}
	})
}

// TestNeighboursGoOn: a task that panics is named, and another works meanwhile.
func TestNeighboursGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tasks := New(Config{SkipAfter: 3, Log: quiet})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		go func() {
			_ = tasks.Run(ctx, shard, func(context.Context, *Guard) error {
				panic("a defect")
			})
		}()
		var ran atomic.Int32
		go func() {
			_ = tasks.Run(ctx, ID{"shard", 4}, func(ctx context.Context, _ *Guard) error {
				for ctx.Err() == nil {
					ran.Add(1)
					select {
					case <-ctx.Done():
					case <-time.After(time.Second):
					}
				}
				return nil
			})
		}()
		time.Sleep(10500 * time.Millisecond)
		f := tasks.Failing()
		if len(f) != 1 || ran.Load() != 11 {
			t.Fatalf("failing %v, the neighbour ran %d times", f, ran.Load())
		}
		if got := f[0].String(); !strings.HasPrefix(got, "shard 3 has failed 4 times since 2000-01-01T00:00:00Z: "+
			"panic: a defect; the next try is at") {
			t.Errorf("said %q", got)
		}
		cancel()
		synctest.Wait()
		if len(tasks.Failing()) > 0 {
			t.Error("a task that has ended still fails")
		}
	})
}

// TestEnded: a task that ends without its last checkpoint is named, and only since it ended; one that could not begin,
// or waits for a person, took nothing.
func TestEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tasks := New(Config{Log: quiet})
		end := func(p int, err error) {
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				time.Sleep(time.Second)
				cancel()
			}()
			_ = tasks.Run(ctx, ID{"shard", p}, func(context.Context, *Guard) error {
				if errors.Is(err, context.Canceled) {
					<-ctx.Done()
				}
				return err
			})
			time.Sleep(time.Second)
		}
		end(9, errors.New("a disk")) // before
		since := time.Now()
		end(0, nil)
		end(1, fmt.Errorf("save: %w: %w", pipeline.ErrUnsaved, context.Canceled))
		end(2, fmt.Errorf("restore: %w", context.Canceled))
		end(3, errors.New("a disk"))
		end(4, Lasting(pipeline.ErrUnusable))
		if n, unsaved := tasks.Ended(since); n != 5 || fmt.Sprint(unsaved) != "[shard 1 shard 3]" {
			t.Errorf("%d have ended, without a checkpoint %v", n, unsaved)
		}
	})
}

// TestSuspectsOfATopicMadeAgain: a task ended at offset 1,000,001, then its topic was deleted and made again. The
// task has since saved a checkpoint beyond a thousand records of the new one, so none of those after it is suspected.
func TestSuspectsOfATopicMadeAgain(t *testing.T) {
	dir := t.TempDir()
	g := New(Config{SkipAfter: 3, Dir: dir, Log: quiet}).guard(shard)
	g.failed(ended(1_000_001, &pipeline.PanicError{Value: "no"}))
	for range 3 { // restarts
		g = New(Config{SkipAfter: 3, Dir: dir, Log: quiet}).guard(shard)
		g.Saved(map[pipeline.Input]int64{pipeline.Logits: 1000, pipeline.Labels: 1000})
		if g.Suspects(record(1001)) {
			t.Error("record 1001 is suspected, and every one up to offset 1,000,001: all go alone")
		}
		g.close()
	}
}
