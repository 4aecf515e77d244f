package attempts

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/plumbline/plumbline/internal/faultlog"
	"github.com/plumbline/plumbline/pipeline"
)

// Guard is the pipeline.Guard of one attempt of a task.
type Guard struct {
	tasks *Tasks
	id    ID

	mu    sync.Mutex
	file  *os.File // nil: nothing is noted
	note  note
	at    int64         // where the file says which record is being taken
	slot  [maxSlot]byte // what it says
	stale bool          // it names one, and none is being taken
	rests bool          // rest will be called
}

// position is where a task met a record.
type position struct {
	Place
	Input pipeline.Input `json:"input"`
}

func positionOf(r pipeline.Record) position {
	return position{Place{r.Topic, r.Partition, r.Offset}, r.Input}
}

// Issue is the record that has ended the task last, and how many times in a row.
type Issue struct {
	Record *position `json:"record,omitempty"`
	Times  int       `json:"times,omitempty"`
	Cause  string    `json:"cause,omitempty"`
}

// note is the content of a guard's file.
type note struct {
	Issue
	Sources []source `json:"sources"` // of the records so far
	// Taking is the place in Sources and the offset of the record of which the process died if it is there at a start.
	// It comes last, in maxSlot bytes, so that one small write replaces it for each record.
	Taking *[2]int64 `json:"taking"`
}

// source is where records come from.
type source struct {
	Topic     string         `json:"topic"`
	Partition int32          `json:"partition"`
	Input     pipeline.Input `json:"input"`
}

const (
	// maxNote is the size of the file: a note is padded, so that one write replaces all of it. A cause of maxCause
	// bytes that all are escaped takes 3 KB, a source 0.4 KB.
	maxNote = 8192
	// maxSlot is the size of Taking.
	maxSlot = 32
)

// restAfter is how long the file may name a record that was taken. Where one record follows another there is one write
// for each. A process that is killed so soon after a record blames it, and does no harm unless that happens again and
// again at the same one.
const restAfter = 5 * time.Millisecond

// maxCause is how much of a cause is noted.
const maxCause = 512

// guard begins an attempt. From here to the first checkpoint it notes which record the task is at.
func (t *Tasks) guard(id ID) *Guard {
	t.mu.Lock()
	g := &Guard{tasks: t, id: id, note: note{Issue: t.of(id).issue}}
	t.mu.Unlock()
	if t.cfg.Dir == "" || t.cfg.SkipAfter == 0 {
		return g
	}
	if err := g.open(); err != nil {
		t.cfg.Log.Warn("no file to note in which record a task is at: a record of which the process dies is not known "+
			"at the next start", "task", id.Task, "partition", id.Partition, faultlog.Err(err))
	}
	return g
}

// open opens the file, and counts the record of which the process before has died.
func (g *Guard) open() error {
	if err := os.MkdirAll(g.tasks.cfg.Dir, 0o700); err != nil {
		return err
	}
	name := url.PathEscape(fmt.Sprintf("%s-%d.json", g.id.Task, g.id.Partition))
	f, err := os.OpenFile(filepath.Join(g.tasks.cfg.Dir, name), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	buf := make([]byte, maxNote)
	n, _ := f.ReadAt(buf, 0)
	var was note
	if n > 0 && json.Unmarshal(buf[:n], &was) == nil {
		g.note.Issue = was.Issue
		if at := was.Taking; at != nil && uint64(at[0]) < uint64(len(was.Sources)) {
			of := was.Sources[at[0]]
			died := position{Place{of.Topic, of.Partition, at[1]}, of.Input}
			g.count(died, "the process died while it took the record")
		}
	}
	g.file = f
	g.write()
	return nil
}

// count counts one more end of the task at a record.
func (g *Guard) count(at position, cause string) {
	tr := &g.note.Issue
	if tr.Record == nil || *tr.Record != at {
		*tr = Issue{Record: &at}
	}
	tr.Times++
	tr.Cause = cause[:min(len(cause), maxCause)]
}

// write writes the note, with no record that is being taken. A write that fails, as on a full disk, costs no more than
// the count of a death.
func (g *Guard) write() {
	if g.file == nil {
		return
	}
	b, err := json.Marshal(g.note)
	if err != nil || len(b)+maxSlot > maxNote {
		_, _ = g.file.WriteAt(g.noRecord(), g.at) // it names the last record that could be noted
		g.at = -1                                 // where no write succeeds
		return
	}
	const end = "null}" // of Taking, which is empty here
	g.at = int64(len(b) - len(end))
	b = append(append(b[:g.at], g.noRecord()...), '}')
	_, _ = g.file.WriteAt(append(b, bytes.Repeat([]byte{' '}, maxNote-len(b))...), 0)
}

// noRecord fills the slot.
func (g *Guard) noRecord() []byte {
	g.stale = false
	return pad(append(g.slot[:0], "null"...))
}

// pad fills a slot up with spaces, which JSON allows.
func pad(slot []byte) []byte {
	for len(slot) < maxSlot {
		slot = append(slot, ' ')
	}
	return slot
}

// sourceOf is the place of a record's source in the note.
func (g *Guard) sourceOf(r *pipeline.Record) int {
	of := source{r.Topic, r.Partition, r.Input}
	at := slices.Index(g.note.Sources, of)
	if at < 0 {
		at = len(g.note.Sources)
		g.note.Sources = append(g.note.Sources, of)
		g.write()
	}
	return at
}

// Pass implements pipeline.Guard.
func (g *Guard) Pass(r pipeline.Record, over func(why string) bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	tr, after := &g.note.Issue, g.tasks.cfg.SkipAfter
	if tr.Record == nil || after == 0 || tr.Times < after || r.Idle || r.Paused || *tr.Record != positionOf(r) {
		return false
	}
	if !over(fmt.Sprintf("skipped: it ended its task %d times in a row: %s", tr.Times, tr.Cause)) {
		return false
	}
	g.tasks.skipped(g.id, tr.Record.Place, tr.Cause)
	return true
}

// suspected is the longest way in offsets from a record that is why a task ended to the one at which it did. Without a
// bound all records of a topic that was made again would be suspected up to the old offset.
const suspected = 100_000

// Suspects implements pipeline.Guard.
func (g *Guard) Suspects(r pipeline.Record) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	at := g.note.Issue.Record
	return at != nil && at.Input == r.Input && at.Topic == r.Topic && at.Partition == r.Partition &&
		r.Offset <= at.Offset && at.Offset-r.Offset < suspected
}

// Taking implements pipeline.Guard.
func (g *Guard) Taking(r pipeline.Record) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.file == nil {
		return
	}
	of := g.sourceOf(&r) // first: it may fill the slot
	slot := strconv.AppendInt(append(g.slot[:0], '['), int64(of), 10)
	slot = append(strconv.AppendInt(append(slot, ','), r.Offset, 10), ']')
	g.stale = false
	_, _ = g.file.WriteAt(pad(slot), g.at)
}

// Taken implements pipeline.Guard.
func (g *Guard) Taken() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.file == nil {
		return
	}
	g.stale = true
	if !g.rests {
		g.rests = true
		time.AfterFunc(restAfter, g.rest)
	}
}

// rest has the file say that no record is being taken, if that is so.
func (g *Guard) rest() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.rests = false
	if g.stale && g.file != nil {
		_, _ = g.file.WriteAt(g.noRecord(), g.at)
	}
}

// Saved implements pipeline.Guard. The task has survived a record when a checkpoint holds a later one.
func (g *Guard) Saved(next map[pipeline.Input]int64) {
	g.mu.Lock()
	tr := &g.note.Issue
	past := tr.Record == nil || next[tr.Record.Input] > tr.Record.Offset
	if past {
		*tr = Issue{}
		g.remove()
	}
	left := *tr
	g.mu.Unlock()
	g.tasks.keep(g.id, left)
	if past {
		g.tasks.saved(g.id)
	}
}

// remove removes the file.
func (g *Guard) remove() {
	if g.file == nil {
		return
	}
	_ = os.Remove(g.file.Name())
	_ = g.file.Close()
	g.file = nil
}

// close ends an attempt that does not count.
func (g *Guard) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.note.Record == nil {
		g.remove()
		return
	}
	g.write()
	if g.file != nil {
		_ = g.file.Close()
		g.file = nil
	}
}

// failed ends an attempt that failed, and counts the record where it is the record's fault.
func (g *Guard) failed(err error) {
	g.mu.Lock()
	var te *pipeline.TakeError
	if errors.As(err, &te) && ofRecord(err) {
		g.count(position{Place{te.Topic, te.Partition, te.Offset}, te.Input}, te.Err.Error())
	}
	g.mu.Unlock()
	g.close()
	g.tasks.keep(g.id, g.note.Issue)
}

// keep remembers the issue of a task for its next attempt in this process.
func (t *Tasks) keep(id ID, tr Issue) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.of(id).issue = tr
}

// ofRecord reports whether an error of a record is the record's own, not that of a disk, a network, a broker or another
// process, which others would meet at any record.
func ofRecord(err error) bool {
	var p *pipeline.PanicError
	if errors.As(err, &p) {
		return true
	}
	var number syscall.Errno
	var path *fs.PathError
	var link *os.LinkError
	var network net.Error // kafka.Error is one
	if errors.As(err, &number) || errors.As(err, &path) || errors.As(err, &link) || errors.As(err, &network) {
		return false
	}
	for _, e := range []error{context.Canceled, context.DeadlineExceeded, io.ErrShortWrite, io.EOF, io.ErrUnexpectedEOF,
		fs.ErrClosed, pipeline.ErrFenced, pipeline.ErrUnsaved} {
		if errors.Is(err, e) {
			return false
		}
	}
	return true
}
