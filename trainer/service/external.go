package service

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/plumbline/plumbline/pipeline/output"
)

// Command is a Runner that hands a job to a program: the request as a JSON file whose path is its last argument, the
// rows as .npz files beside it, the result as files in a directory that the request names.
//
// The program's standard input is open for as long as the job is wanted: a trainer that is killed closes it. A line of
// its standard output that is a JSON object with progress, and perhaps step and nll, tells how far it is.
type Command struct {
	Args []string
	// Load gives the rows that are exported; nil: none are, the program has its own.
	Load Load
	// Grace is what the program gets after SIGTERM.
	Grace time.Duration
	Log   *slog.Logger
}

// CommandRequest is the file that the program is given. Paths are absolute.
type CommandRequest struct {
	Schema  int             `json:"schema"` // 1
	Request output.Finetune `json:"request"`
	Attempt int             `json:"attempt"`
	// Train and Validation are .npz files with features (float32, n×D), labels (int32) and ts (int64, ns); Head is the head
	// that serves, a .safetensors file. Empty: there is none.
	Train      string `json:"train,omitempty"`
	Validation string `json:"validation,omitempty"`
	Head       string `json:"head,omitempty"`
	// Result is an empty directory for head.safetensors and then report.json; Work one that stays between attempts.
	Result string `json:"result"`
	Work   string `json:"work"`
}

// FileJob is the name of a CommandRequest's file in the job's directory.
const FileJob = "job.json"

// Run implements Runner.
func (c *Command) Run(ctx context.Context, t Task) error {
	file, err := c.prepare(ctx, t)
	if err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(t.Dir, "command.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.CommandContext(ctx, c.Args[0], append(append([]string{}, c.Args[1:]...), file)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = c.Grace
	tail := &tailWriter{}
	cmd.Stderr = io.MultiWriter(log, tail)
	if _, err := cmd.StdinPipe(); err != nil { // closed when this process ends, however it ends
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%w: command: %w", ErrHopeless, err)
	}
	c.read(out, log, t)
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("command %s: %w: %s", c.Args[0], err, tail.last())
	}
	return c.complete(t)
}

// complete checks what the program left, and adds the ONNX file where it wrote none.
func (c *Command) complete(t Task) error {
	res, err := ReadResult(t.Result, t.Request)
	if err != nil || res.Head == nil || exists(filepath.Join(t.Result, FileONNX)) {
		return err
	}
	return writeONNX(t.Result, res.Head)
}

// prepare writes the program's files.
func (c *Command) prepare(ctx context.Context, t Task) (file string, err error) {
	dir, err := filepath.Abs(t.Dir)
	if err != nil {
		return "", err
	}
	r := CommandRequest{Schema: 1, Request: t.Request, Attempt: t.Attempt, Work: filepath.Join(dir, "work")}
	if r.Result, err = filepath.Abs(t.Result); err != nil {
		return "", err
	}
	if err := os.MkdirAll(r.Work, 0o755); err != nil {
		return "", err
	}
	if c.Load != nil {
		rows, err := c.Load(ctx, t.Request)
		if err != nil {
			return "", err
		}
		r.Train, r.Validation = filepath.Join(dir, "train.npz"), filepath.Join(dir, "validation.npz")
		if err := errors.Join(writeNPZ(r.Train, rows.Train), writeNPZ(r.Validation, rows.Valid)); err != nil {
			return "", err
		}
		if rows.Current != nil {
			r.Head = filepath.Join(dir, "current.safetensors")
			if err := writeHead(r.Head, rows.Current); err != nil {
				return "", err
			}
		}
	}
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return "", err
	}
	file = filepath.Join(dir, FileJob)
	return file, writeFile(file, text)
}

// read passes the program's output to the log, and its progress on.
func (c *Command) read(out io.Reader, log io.Writer, t Task) {
	const longest = 1 << 20
	s := bufio.NewScanner(out)
	s.Buffer(nil, longest)
	for s.Scan() {
		var p struct {
			Progress *float64
			Step     string
			NLL      float64
		}
		if json.Unmarshal(s.Bytes(), &p) == nil && p.Progress != nil {
			t.Progress(p.Step, *p.Progress, p.NLL)
			continue
		}
		if _, err := fmt.Fprintln(log, s.Text()); err != nil {
			c.Log.Warn("command.log", "err", err)
		}
	}
	_, _ = io.Copy(io.Discard, out) // after a line that is too long
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
