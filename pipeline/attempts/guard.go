package attempts

import (
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
	"sync"
	"syscall"
	"time"

	"github.com/plumbline/plumbline/pipeline"
)

// Guard is the pipeline.Guard of one attempt of a task.
type Guard struct {
	tasks *Tasks
	id    ID

	mu     sync.Mutex
	file   *os.File // nil: nothing is noted
	note   note
	buf    []byte
	taking position
	stale  bool // the file says that a record is being taken, and none is
	rests  bool // rest will be called
}

// position is where a task met a record.
type position struct {
	Place
	Input pipeline.Input `json:"input"`
}

func positionOf(r pipeline.Record) position {
	return position{Place{r.Topic, r.Partition, r.Offset}, r.Input}
}

// Trouble is the record that has ended the task last, and how many times in a row.
type Trouble struct {
	Record *position `json:"record,omitempty"`
	Times  int       `json:"times,omitempty"`
	Cause  string    `json:"cause,omitempty"`
}

// note is the content of a guard's file.
type note struct {
	Trouble
	Taking *position `json:"taking,omitempty"` // the process died of it if it is there at a start
}

// maxNote is the size of the file: a note is padded, so that one write replaces all of it.
const maxNote = 2048

// restAfter is how long the file may name a record that was taken. Where one record follows another there is one write
// for each. A process that is killed so soon after a record blames it, and does no harm unless that happens again and
// again at the same one.
const restAfter = 5 * time.Millisecond

// maxCause is how much of a cause is noted.
const maxCause = 512

// guard begins an attempt. From here to the first checkpoint it notes which record the task is at.
func (t *Tasks) guard(id ID) *Guard {
	t.mu.Lock()
	g := &Guard{tasks: t, id: id, note: note{Trouble: t.of(id).trouble}}
	t.mu.Unlock()
	if t.cfg.Dir == "" || t.cfg.SkipAfter == 0 {
		return g
	}
	if err := g.open(); err != nil {
		t.cfg.Log.Warn("no file to note in which record a task is at: a record of which the process dies is not known "+
			"at the next start", "task", id.Task, "partition", id.Partition, "err", err)
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
		g.note.Trouble = was.Trouble
		if was.Taking != nil {
			g.count(*was.Taking, "the process died while it took the record")
		}
	}
	g.file = f
	g.write()
	return nil
}

// count counts one more end of the task at a record.
func (g *Guard) count(at position, cause string) {
	tr := &g.note.Trouble
	if tr.Record == nil || *tr.Record != at {
		*tr = Trouble{Record: &at}
	}
	tr.Times++
	tr.Cause = cause[:min(len(cause), maxCause)]
}

// write writes the note. A write that fails, as on a full disk, costs no more than the count of a death.
func (g *Guard) write() {
	if g.file == nil {
		return
	}
	b, err := json.Marshal(g.note)
	if err != nil || len(b) > maxNote {
		return
	}
	if g.buf == nil {
		g.buf = make([]byte, maxNote)
	}
	for i := copy(g.buf, b); i < maxNote; i++ {
		g.buf[i] = ' '
	}
	g.stale = false
	_, _ = g.file.WriteAt(g.buf, 0)
}

// Pass implements pipeline.Guard.
func (g *Guard) Pass(r pipeline.Record, over func(why string) bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	tr, after := &g.note.Trouble, g.tasks.cfg.SkipAfter
	if tr.Record == nil || after == 0 || tr.Times < after || r.Idle || r.Paused || *tr.Record != positionOf(r) {
		return false
	}
	if !over(fmt.Sprintf("skipped: it ended its task %d times in a row: %s", tr.Times, tr.Cause)) {
		return false
	}
	g.tasks.skipped(g.id, tr.Record.Place, tr.Cause)
	return true
}

// Taking implements pipeline.Guard.
func (g *Guard) Taking(r pipeline.Record) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.file == nil {
		return
	}
	g.taking = positionOf(r)
	g.note.Taking = &g.taking
	g.write()
}

// Taken implements pipeline.Guard.
func (g *Guard) Taken() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.file == nil {
		return
	}
	g.note.Taking, g.stale = nil, true
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
	if g.stale {
		g.write()
	}
}

// Saved implements pipeline.Guard. The task has survived a record when a checkpoint holds a later one.
func (g *Guard) Saved(next map[pipeline.Input]int64) {
	g.mu.Lock()
	tr := &g.note.Trouble
	past := tr.Record == nil || next[tr.Record.Input] > tr.Record.Offset
	if past {
		*tr = Trouble{}
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
	g.note.Taking = nil
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
	g.tasks.keep(g.id, g.note.Trouble)
}

// keep remembers the trouble of a task for its next attempt in this process.
func (t *Tasks) keep(id ID, tr Trouble) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.of(id).trouble = tr
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
