package standalone

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/plumbline/plumbline/internal/testsize"
)

// childDir names the directory that a process of this test serves.
const childDir = "PLUMBLINE_SERVE_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		log := slog.New(slog.NewTextHandler(os.Stderr, nil))
		err := Serve(ctx, Options{Dir: dir, Listen: os.Getenv(childDir + "_LISTEN"), Log: log,
			Tell: func(string, ...any) {}})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1) //nolint:gocritic // stop is of no use any more
		}
		return
	}
	os.Exit(m.Run())
}

// process serves a directory, and may be killed and started again.
type process struct {
	t      *testing.T
	dir    string
	listen string
	cmd    *exec.Cmd
	log    *os.File
}

func newProcess(t *testing.T, dir string) *process {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listen := l.Addr().String()
	_ = l.Close()
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, dir: dir, listen: listen, log: log}
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			b, _ := os.ReadFile(log.Name())
			t.Logf("%s", b[max(0, len(b)-4000):])
		}
	})
	return p
}

func (p *process) start() {
	p.t.Helper()
	p.cmd = exec.Command(os.Args[0])
	p.cmd.Env = append(os.Environ(), childDir+"="+p.dir, childDir+"_LISTEN="+p.listen)
	p.cmd.Stderr = p.log
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
}

func (p *process) kill() {
	if p.cmd != nil && p.cmd.Process != nil {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
	}
	p.cmd = nil
}

// stop ends the process as an operator does.
func (p *process) stop() {
	p.t.Helper()
	err := p.cmd.Process.Signal(syscall.SIGTERM)
	if err == nil {
		err = p.cmd.Wait()
	}
	if p.cmd = nil; err != nil {
		p.t.Fatal(err)
	}
}

// post sends rows once; nil means that they were acknowledged.
func (p *process) post(kind, body string) (int, error) {
	c := http.Client{Timeout: 30 * time.Second}
	r, err := c.Post("http://"+p.listen+"/api/v1/ingest/m/"+kind, "application/json", strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	defer func() { _ = r.Body.Close() }()
	text, err := io.ReadAll(r.Body)
	if err == nil && r.StatusCode != http.StatusOK {
		err = fmt.Errorf("%d %s", r.StatusCode, text)
	}
	return r.StatusCode, err
}

// counts are those of the process that the tests look at.
type counts struct {
	Predictions, Labels, Joined, Duplicates, Labelled, Late int64
	Rejected                                                map[string]int64
	Letters                                                 map[string]int64 `json:"dead_letters"`
	Unaccounted                                             int64            `json:"-"`
}

func (p *process) counts() (counts, error) {
	c := http.Client{Timeout: 5 * time.Second}
	r, err := c.Get("http://" + p.listen + "/api/v1/status")
	if err != nil {
		return counts{}, err
	}
	defer func() { _ = r.Body.Close() }()
	var s struct {
		Process struct {
			Counts      counts
			Unaccounted int64 `json:"rows_unaccounted"`
		}
	}
	err = json.NewDecoder(r.Body).Decode(&s)
	s.Process.Counts.Unaccounted = s.Process.Unaccounted
	return s.Process.Counts, err
}

// await waits until want labelled rows are counted, and checks that everything else is as it must be.
func (p *process) await(want int64) {
	p.t.Helper()
	var c counts
	var err error
	for end := time.Now().Add(60 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if c, err = p.counts(); err == nil && c.Joined >= want {
			break
		}
	}
	if err != nil || c.Joined != want || c.Labelled != want || len(c.Rejected)+len(c.Letters) > 0 ||
		c.Unaccounted != 0 ||
		c.Late != 0 {
		p.t.Fatalf("%v: %+v, want %d labelled rows and nothing else", err, c, want)
	}
}

// rows are predictions and labels of a batch, and the ids are its own.
func rows(from, n int) (predictions, labels string) {
	var a, b bytes.Buffer
	for i := from; i < from+n; i++ {
		p := float64(i%90+5) / 100
		fmt.Fprintf(&a, `{"id":"row-%d","probs":[%.2f,%.2f]}`+"\n", i, p, 1-p)
		fmt.Fprintf(&b, `{"id":"row-%d","label":%d}`+"\n", i, i%2)
	}
	return a.String(), b.String()
}

// TestKillLosesNothing: a process is killed at any moment, again and again, while rows come in over HTTP. Every row
// that was acknowledged is counted, and counted once, although those without an answer are sent again.
func TestKillLosesNothing(t *testing.T) {
	testsize.Slow(t)
	const kills, per = 20, 20
	p := newProcess(t, filepath.Join(t.TempDir(), "plumbline"))
	p.start()
	var next, acknowledged, repeated atomic.Int64
	var senders sync.WaitGroup
	var enough atomic.Bool
	send := func(kind, body string) {
		for tries := 0; ; tries++ {
			_, err := p.post(kind, body)
			if err == nil {
				acknowledged.Add(1)
				return
			}
			repeated.Add(1)
			time.Sleep(10 * time.Millisecond)
		}
	}
	for range 3 {
		senders.Go(func() {
			for !enough.Load() {
				i := int(next.Add(1)) - 1
				predictions, labels := rows(i*per, per)
				send("predictions", predictions)
				send("labels", labels)
			}
		})
	}
	for range kills {
		for before := acknowledged.Load(); acknowledged.Load() == before; { // the last start answers
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Duration(rand.IntN(300)) * time.Millisecond)
		p.kill()
		p.start()
	}
	enough.Store(true)
	senders.Wait()
	want := next.Load() * per
	p.await(want)
	t.Logf("killed %d times, %d rows, %d requests acknowledged, %d sent again", kills, want, acknowledged.Load(),
		repeated.Load())
	p.stop()
	p.start()
	p.await(want)
}

// TestOneProcess: a directory is served by one process, and only if it is of this command.
func TestOneProcess(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "holiday.jpg"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	o := Options{Dir: dir, Log: slog.New(slog.DiscardHandler), Tell: func(string, ...any) {}}
	if err := Serve(t.Context(), o); !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), "holiday.jpg") {
		t.Errorf("a directory of others: %v", err)
	}
	p := newProcess(t, filepath.Join(dir, "new"))
	p.start()
	p.await(0)
	o.Dir = p.dir
	if err := Serve(t.Context(), o); err == nil || !strings.Contains(err.Error(), "in use by another process") {
		t.Errorf("a second process: %v", err)
	}
	for _, part := range []string{"", "broker", ConfigFile} {
		if info, err := os.Stat(filepath.Join(p.dir, part)); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%q: %v, mode %v, for its owner only", part, err, info.Mode())
		}
	}
}
