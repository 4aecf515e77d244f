package service

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/plumbline/plumbline/internal/durable"
	"github.com/plumbline/plumbline/pipeline/record"
	"github.com/plumbline/plumbline/trainer/artefact"
	"github.com/plumbline/plumbline/trainer/head"
)

// Command is a Runner that hands a job to a program: the request as a JSON file whose path is its last argument, the
// rows as .npz files beside it, the result as files in a directory that the request names.
//
// The program's standard input is open for as long as the job is wanted: a trainer that is killed closes it. A line of
// its standard output that is a JSON object with progress, and perhaps step and nll, reports progress.
type Command struct {
	Args []string
	// Load gives the rows that are exported; nil: none are, the program has its own.
	Load Load
	// Guard is the command line of a process that calls the function Guard with the arguments behind these. Guarded,
	// the program ends with all that it has started, also when this process is killed. nil: it is started directly.
	Guard []string
	// Grace is what the program gets after SIGTERM.
	Grace time.Duration
	Log   *slog.Logger
}

// CommandRequest is the file that the program is given. Paths are absolute.
type CommandRequest struct {
	Schema  int             `json:"schema"` // 1
	Request record.Finetune `json:"request"`
	Attempt int             `json:"attempt"`
	// Train and Validation are .npz files with features (float32, n×D), labels (int32) and ts (int64, ns); Head is the
	// head that serves, a .safetensors file. Empty: there is none.
	Train      string `json:"train,omitempty"`
	Validation string `json:"validation,omitempty"`
	Head       string `json:"head,omitempty"`
	// Result is an empty directory for head.safetensors and then report.json; Work one that stays between attempts.
	Result string `json:"result"`
	Work   string `json:"work"`
}

// FileJob is the name of a CommandRequest's file in the job's directory; the others are those of its rows.
const (
	FileJob        = "job.json"
	fileTrain      = "train.npz"
	fileValidation = "validation.npz"
)

// Run implements Runner.
func (c *Command) Run(ctx context.Context, t Task) error {
	if _, err := exec.LookPath(c.Args[0]); err != nil {
		return fmt.Errorf("%w: command: %w", ErrHopeless, err)
	}
	file, rows, err := c.prepare(ctx, t)
	if err != nil {
		return err
	}
	logFile, err := os.OpenFile(filepath.Join(t.Dir, "command.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer logFile.Close()
	log := &boundedLog{to: logFile, warn: func(err error) { c.Log.Warn("command.log has no more", "err", err) }}
	cmd := c.command(ctx, file)
	tail := &tailWriter{}
	cmd.Stderr = io.MultiWriter(log, tail)
	if _, err := cmd.StdinPipe(); err != nil { // closed when this process ends, however it ends
		return err
	}
	out := &lineWriter{line: func(text []byte) { c.readLine(text, log, t) }}
	cmd.Stdout = out
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%w: command: %w", ErrHopeless, err)
	}
	err = cmd.Wait()
	signalGroup(cmd, syscall.SIGKILL) // what it has started and left behind
	out.end()
	if err != nil && !errors.Is(err, exec.ErrWaitDelay) { // what it has left behind had its output open
		return fmt.Errorf("command %s: %s", c.Args[0], exitText(err, tail.last()))
	}
	if err := c.complete(t, rows); err != nil {
		return err
	}
	return c.clean(t)
}

// command is the program with a request's file, in a process group that ends when ctx does.
func (c *Command) command(ctx context.Context, file string) *exec.Cmd {
	args := slices.Concat(c.Guard, c.Args, []string{file})
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	ownGroup(cmd)
	cmd.Cancel = func() error { signalGroup(cmd, syscall.SIGTERM); return nil }
	cmd.WaitDelay = c.Grace
	if len(c.Guard) > 0 {
		cmd.WaitDelay += guardTime
	}
	return cmd
}

// guardTime is what a guard gets beyond the grace of the program that it ends.
const guardTime = 2 * time.Second

// clean removes the rows that were written for the program: they are large, and the next attempt writes its own.
func (c *Command) clean(t Task) error {
	if c.Load == nil {
		return nil
	}
	return errors.Join(os.Remove(filepath.Join(t.Dir, fileTrain)), os.Remove(filepath.Join(t.Dir, fileValidation)))
}

// exitText is how a program failed, with the last line of its standard error where it has one.
func exitText(err error, last string) string {
	text := err.Error()
	// A guard passes a signal on as an exit code.
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() > exitSignalled {
		text += fmt.Sprintf(" (signal: %s)", syscall.Signal(exit.ExitCode()-exitSignalled))
	}
	if last != "" {
		text += ": " + last
	}
	return text
}

// exported is what is known of the rows that the program was given.
type exported struct {
	features int // 0: there are none
	current  *head.Head
}

// complete checks what the program left, scores its head on the validation rows, and adds the ONNX file where it wrote
// none.
func (c *Command) complete(t Task, rows exported) error {
	res, err := ReadResult(t.Result, t.Request)
	if err != nil || res.Head == nil {
		return err
	}
	if d := res.Head.D(); rows.features != 0 && d != rows.features {
		return fmt.Errorf("%w: %s: a head of %d features, the rows have %d", ErrResult, FileHead, d, rows.features)
	}
	if err := varies(res.Head); err != nil {
		return err
	}
	if rows.features != 0 {
		if err := c.judge(t, res, rows.current); err != nil {
			return err
		}
	}
	text, err := readBounded(filepath.Join(t.Result, FileONNX), maxONNX)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return writeONNX(t.Result, res.Head)
	case err != nil:
		return err
	}
	if err := artefact.CheckONNX(text); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrResult, FileONNX, err)
	}
	return nil
}

const maxONNX = 8 << 30

// varies refuses a head that says the same of every row.
func varies(h *head.Head) error {
	last := h.Layers[len(h.Layers)-1]
	for i, w := range last.W {
		if w != last.W[i%last.In] {
			return nil
		}
	}
	return fmt.Errorf("%w: %s: the weights of all classes are the same, so that every row gets the same probabilities",
		ErrResult, FileHead)
}

// prepare writes the program's files.
func (c *Command) prepare(ctx context.Context, t Task) (file string, out exported, err error) {
	dir, err := filepath.Abs(t.Dir)
	if err != nil {
		return "", out, err
	}
	r := CommandRequest{Schema: 1, Request: t.Request, Attempt: t.Attempt, Work: filepath.Join(dir, "work")}
	if r.Result, err = filepath.Abs(t.Result); err != nil {
		return "", out, err
	}
	if err := os.MkdirAll(r.Work, 0o700); err != nil {
		return "", out, err
	}
	if c.Load != nil {
		rows, err := c.Load(ctx, t.Request)
		if err != nil {
			return "", out, err
		}
		defer rows.close()
		out = exported{rows.Train.D, rows.Current}
		r.Train, r.Validation = filepath.Join(dir, fileTrain), filepath.Join(dir, fileValidation)
		err = errors.Join(writeNPZ(r.Train, rows.Train), writeNPZ(r.Validation, rows.Valid), rows.err())
		if err != nil {
			return "", out, err
		}
		if rows.Current != nil {
			r.Head = filepath.Join(dir, "current.safetensors")
			if err := writeHead(r.Head, rows.Current); err != nil {
				return "", out, err
			}
		}
	}
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return "", out, err
	}
	file = filepath.Join(dir, FileJob)
	return file, out, durable.WriteFile(file, text)
}

// maxStep bounds the text of a step, which is in every heartbeat.
const maxStep = 200

// readLine takes a line of the program's output: progress goes to the task, all else to the log.
func (c *Command) readLine(line []byte, log io.Writer, t Task) {
	var p struct {
		Progress *float64
		Step     string
		NLL      float64
	}
	if json.Unmarshal(line, &p) == nil && p.Progress != nil {
		t.Progress(shortened(p.Step, maxStep), min(max(*p.Progress, 0), 1), p.NLL)
		return
	}
	_, _ = fmt.Fprintf(log, "%s\n", line) // it never fails
}

// lineWriter calls line with each line; one that is longer than is held comes in parts.
type lineWriter struct {
	line func([]byte)
	b    []byte
	seen int // bytes of b that are no ends of lines
}

const longestLine = 1 << 20

func (w *lineWriter) Write(p []byte) (int, error) {
	w.b = append(w.b, p...)
	for {
		switch i := bytes.IndexByte(w.b[w.seen:], '\n'); {
		case i >= 0:
			w.line(w.b[:w.seen+i])
			w.b, w.seen = w.b[w.seen+i+1:], 0
		case len(w.b) > longestLine:
			w.line(w.b[:longestLine])
			w.b = w.b[longestLine:]
			w.seen = len(w.b)
		default:
			w.seen = len(w.b)
			return len(p), nil
		}
	}
}

// end is the end of the output.
func (w *lineWriter) end() {
	if len(w.b) > 0 {
		w.line(w.b)
	}
}

// boundedLog writes the first bytes of an attempt: a program that never stops to talk must not fill the disk. It never
// fails, since a program whose output nobody takes is ended by the system: on a full disk it ends, and warns once.
type boundedLog struct {
	mu   sync.Mutex // standard output and standard error come beside each other
	to   io.Writer
	size int
	warn func(error)
}

const maxLog = 16 << 20

func (w *boundedLog) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.size > maxLog {
		return len(p), nil
	}
	var err error
	if w.size += len(p); w.size <= maxLog {
		_, err = w.to.Write(p)
	} else {
		_, err = fmt.Fprintf(w.to, "\nthe output is longer than %d MiB: the rest is not written\n", maxLog>>20)
	}
	if err != nil {
		w.size = maxLog + 1
		w.warn(err)
	}
	return len(p), nil
}

// tailWriter keeps the end of what is written.
type tailWriter struct{ b []byte }

const maxTail = 2048

func (w *tailWriter) Write(p []byte) (int, error) {
	if w.b = append(w.b, p...); len(w.b) > maxTail {
		w.b = append([]byte(nil), w.b[len(w.b)-maxTail:]...)
	}
	return len(p), nil
}

// last is the last line that is not empty.
func (w *tailWriter) last() string {
	text := strings.TrimSpace(string(w.b))
	return text[strings.LastIndexByte(text, '\n')+1:]
}
