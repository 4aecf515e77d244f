//go:build integration

package integration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A Go program asks the kernel for the time without the C library, so a library that is loaded before it (libfaketime)
// changes nothing, and the machine's own clock is others' too. So this scenario runs the same sources built with an
// overlay: time.Now adds a number of seconds that the process reads from a file. The monotonic clock goes on as it
// does when a real clock is set.
const (
	nowBefore = "\tsec, nsec, mono := runtimeNow()\n"
	nowAfter  = "\tsec, nsec, mono := runtimeNow()\n\tsec += ClockJump\n"
	jumpVar   = "\n// ClockJump is added to the wall clock, in seconds.\nvar ClockJump int64\n"
	jumpMain  = `package main

import (
	"fmt"
	"os"
	"time"
)

func init() {
	go func() {
		for ; ; time.Sleep(50 * time.Millisecond) {
			if b, err := os.ReadFile(os.Getenv("PLUMBLINE_CLOCK_JUMP")); err == nil {
				_, _ = fmt.Sscan(string(b), &time.ClockJump)
			}
		}
	}()
}
`
)

// buildWithClock builds the binary with another clock, and a source that sets time.ClockJump.
func buildWithClock(t *testing.T, setting string) string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatalf("go env GOROOT: %v", err)
	}
	file := filepath.Join(string(bytes.TrimSpace(out)), "src", "time", "time.go")
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	i := bytes.Index(source, []byte("func Now() Time {\n"+nowBefore))
	if i < 0 {
		t.Fatalf("time.Now in %s does not begin with %q: give the replacement for this version of Go", file, nowBefore)
	}
	changed := append(source[:i:i], bytes.Replace(source[i:], []byte(nowBefore), []byte(nowAfter), 1)...)
	changed = append(changed, jumpVar...)
	return buildOverlaid(t, map[string][]byte{file: changed, filepath.Join(root, "cmd", "plumbline",
		"clock_jump.go"): []byte(setting)})
}

// buildHooked builds the binary with call before the one place of a file that reads so, and the source of what it calls
// in a file beside it.
func buildHooked(t *testing.T, file, place, call, source string) string {
	t.Helper()
	old, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(old, []byte(place)); n != 1 {
		t.Fatalf("%s has %d places that read %q, want 1", file, n, place)
	}
	return buildOverlaid(t, map[string][]byte{file: bytes.Replace(old, []byte(place), []byte(call+place), 1),
		strings.TrimSuffix(file, ".go") + "_hooked.go": []byte(source)})
}

// buildOverlaid builds the binary with other contents of some files.
func buildOverlaid(t *testing.T, files map[string][]byte) string {
	t.Helper()
	dir, replace := t.TempDir(), map[string]string{}
	for name, content := range files {
		replace[name] = filepath.Join(dir, fmt.Sprintf("overlay-%d.go", len(replace)))
		if err := os.WriteFile(replace[name], content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	list, path := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "plumbline")
	if err := os.WriteFile(list, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-overlay", list, "-o", path, "./cmd/plumbline")
	build.Dir, build.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build with changed sources: %v\n%s", err, out)
	}
	return path
}

// clockJumps sets the processes' wall clocks two hours ahead, each at its own moment, then a day back, and kills one
// of them meanwhile, so that another with another time takes its tasks.
func (s *suite) clockJumps(t *testing.T) {
	o := s.options()
	o.binary = buildWithClock(t, jumpMain)
	d := s.deploy(t, o)
	set := func(w *worker, seconds int) {
		if err := os.WriteFile(w.clock, fmt.Append(nil, seconds), 0o600); err != nil {
			t.Fatal(err)
		}
		d.did("clock of a worker set %v off", time.Duration(seconds)*time.Second)
	}
	s.disturbed(t, d, func(p *producer) {
		for i, seconds := range []int{7200, -86400, 30, 0} {
			for j, w := range d.workers {
				s.progress(t, d, 0.1+0.2*float64(i)+0.05*float64(j))
				set(w, seconds)
			}
			w := d.workers[i%len(d.workers)]
			w.kill()
			w.start()
		}
	})
	day := time.Now().Add(-24 * time.Hour).Format("2006-01-02T")
	if d.logged("time="+day) == 0 {
		t.Error("no log line is of yesterday: the clocks did not jump")
	}
}
