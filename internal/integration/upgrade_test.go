//go:build integration

package integration

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/pipeline"
)

// upgradeConfig is growthConfig with the calibrated stream, by whose messages a pause is measured.
const upgradeConfig = growthConfig + `
calibrated: {enabled: true, columns: probs}
`

// The stamps of the two builds.
const oldStamp, newStamp = "v0.0.0-old", "v0.0.0-new"

// TestRollingUpgrade replaces three processes one after the other by another build while rows come, and then brings the
// old build back the same way. The builds are the working tree and the commit before it (PLUMBLINE_OLD names another).
// Every row counts once, and a replay has the state of the live run. Last, a build of a later format is tried: it
// refuses the state in words, and the old one goes on. PLUMBLINE_DOCS=1 rewrites bench/results/upgrade.md.
func TestRollingUpgrade(t *testing.T) {
	commit, before := oldBuild(t)
	after := buildStamped(t, root, newStamp)
	u := &upgrade{growthWorkers: growthWorkers{t: t, p: make([]*process, 3)}, commit: commit}
	u.s = configureEdited(t, upgradeConfig, "replication: 1", "replication: 1\n  session_timeout: 6s")
	for i := range u.p {
		u.replace(i, before, oldStamp)
	}
	u.stream = newGrowthStream(t, u.s)
	ctx, stop := context.WithCancel(t.Context())
	var live sync.WaitGroup
	live.Go(func() { u.live(ctx) })
	live.Go(func() { u.listen(ctx) })
	calm := testsize.Pick(5*time.Second, 30*time.Second)
	still := func() { // as long, and longer where the machine is slow
		time.Sleep(calm)
		u.p[0].wait(time.Minute, "calibrate thousands of rows", func() bool { return u.calibrated() >= 2*leastRows })
	}
	u.stretch("before", still)
	for i, stamp := range []string{newStamp, oldStamp} {
		build := []string{after, before}[i]
		u.stretch([]string{"upgrade, three processes in turn", "downgrade, three processes in turn"}[i], func() {
			for n := range u.p {
				u.p[n].stop()
				u.replace(n, build, stamp)
			}
		})
	}
	u.stretch("after", still)
	stop()
	live.Wait()
	u.stream.tick(true)
	total := u.stream.total()
	v := u.drain(total)
	for _, name := range []string{"predictions", "labels", "joined", "labelled"} {
		if v.counts[name] != total {
			t.Errorf("%s: %d, sent were %d", name, v.counts[name], total)
		}
	}
	if n, detail := pipeline.Unaccounted(v.counts); n != 0 || v.counts["late"] != 0 || v.counts["waiting"] != 0 {
		t.Errorf("counts %v: %s", v.counts, detail)
	}
	restarts := 0
	for _, p := range u.p {
		restarts += p.restarts()
		p.stop()
	}
	if again := replayed(t, u.s, after); !maps.Equal(again, v.models) {
		t.Errorf("a replay by the new build has the state %v, want that of the live run, %v", again, v.models)
	}
	u.table(t, total, restarts)
	u.laterFormat(v, total, before)
}

// upgrade is a deployment whose processes are of two builds.
type upgrade struct {
	growthWorkers
	commit string
	stream *growthStream

	mu    sync.Mutex
	sent  []time.Time        // by tick
	seen  map[int]bool       // rows
	waits map[string][]pause // by stretch
	now   string             // the stretch
	order []string
	spans []time.Duration
}

// pause is how long a row waited for its calibrated output.
type pause = time.Duration

// replace starts a process of a build and waits until it is ready, as the operations page says.
func (u *upgrade) replace(i int, build, stamp string) {
	u.t.Helper()
	u.s.binary = build
	u.start(i)
	p := u.p[i]
	var answer struct {
		Process struct{ Version string }
	}
	p.mustGet("/api/v1/status", &answer)
	if answer.Process.Version != stamp {
		u.t.Fatalf("process %d is of version %q, want %q", i, answer.Process.Version, stamp)
	}
	p.wait(20*time.Second, "be ready", func() bool {
		resp, err := http.Get("http://" + p.s.listen + "/-/ready")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		if strings.Contains(string(body), "this build reads version") {
			u.t.Fatalf("the builds have different formats: %s\nCHANGELOG.md must say so, and the test needs "+
				"PLUMBLINE_OLD with a commit of this format", body)
		}
		return resp.StatusCode == http.StatusOK
	})
}

// live sends a tick each growthTick and notes when.
func (u *upgrade) live(ctx context.Context) {
	tick := time.NewTicker(growthTick)
	defer tick.Stop()
	for ctx.Err() == nil {
		u.mu.Lock()
		u.sent = append(u.sent, time.Now())
		u.mu.Unlock()
		u.stream.tick(false)
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// listen notes how long each row waited for its calibrated output, the first where it comes again.
func (u *upgrade) listen(ctx context.Context) {
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.ConsumeTopics(u.s.topic("calibrated")),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(50*time.Millisecond))
	if err != nil {
		u.t.Error(err)
		return
	}
	defer client.Close()
	rows, known := map[arrowio.ID]int{}, 0
	for ctx.Err() == nil {
		fetches := client.PollFetches(ctx)
		now := time.Now()
		u.mu.Lock()
		for ; known < len(u.sent)*growthTicks; known++ {
			rows[arrowio.HashID(fmt.Sprintf("r%d", known))] = known
		}
		fetches.EachRecord(func(r *kgo.Record) { u.came(r.Value, rows, now) })
		u.mu.Unlock()
	}
}

func (u *upgrade) came(value []byte, rows map[arrowio.ID]int, now time.Time) {
	bs, err := arrowio.NewDecoder(arrowio.Options{}).Decode(value, arrowio.Origin{}, arrowio.Predictions)
	if err != nil {
		u.t.Errorf("a calibrated message cannot be read: %v", err)
		return
	}
	for _, b := range bs {
		for _, id := range b.IDs[:b.N] {
			row, ok := rows[id]
			if !ok {
				u.t.Error("a calibrated row was never sent")
				return
			}
			if !u.seen[row] {
				u.seen[row] = true
				u.waits[u.now] = append(u.waits[u.now], now.Sub(u.sent[row/growthTicks]))
			}
		}
	}
}

// stretch names what happens meanwhile.
func (u *upgrade) stretch(name string, what func()) {
	u.mu.Lock()
	if u.seen == nil {
		u.seen, u.waits = map[int]bool{}, map[string][]pause{}
	}
	u.now = name
	u.mu.Unlock()
	u.order = append(u.order, name)
	began := time.Now()
	what()
	u.spans = append(u.spans, time.Since(began))
}

// calibrated is how many rows have come in this stretch.
func (u *upgrade) calibrated() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.waits[u.now])
}

// leastRows is how many calibrated rows of a stretch tell how long rows wait.
const leastRows = 1000

// pauseBound is the most that a row may wait while processes are replaced: a session that ran out would show.
const pauseBound = 6 * time.Second

func (u *upgrade) table(t *testing.T, total int64, restarts int) {
	var b strings.Builder
	fmt.Fprintf(&b, "%s; three processes, %d partitions, checkpoints every 0.5 s, %d rows/s, %d rows; the old build "+
		"is of commit %s; tasks that ended with an error: %d.\n\n"+
		"| | seconds | a row waits for its calibrated output: p50 | p99 | most |\n|---|---|---|---|---|\n",
		time.Now().UTC().Format(time.DateOnly), partitions, int(time.Second/growthTick)*growthTicks, total, u.commit,
		restarts)
	for i, name := range u.order {
		w := u.waits[name]
		slices.Sort(w)
		if len(w) < leastRows {
			t.Errorf("%s: %d calibrated rows, want thousands", name, len(w))
			continue
		}
		at := func(q float64) float64 { return w[int(q*float64(len(w)-1))].Seconds() }
		p99 := at(.99)
		fmt.Fprintf(&b, "| %s | %.1f | %.2f s | %.2f s | %.2f s |\n", name, u.spans[i].Seconds(), at(.5), p99, at(1))
		if p99 > pauseBound.Seconds() {
			t.Errorf("%s: p99 of the pause is %.1f s, the most is %v", name, p99, pauseBound)
		}
	}
	t.Logf("table:\n%s", b.String())
	if !t.Failed() {
		writeSection(t, "upgrade", b.String())
	}
}

// laterFormat tries a build that writes another version of a section: it refuses the state in words, changes nothing,
// and the old build goes on.
func (u *upgrade) laterFormat(v growthView, total int64, before string) {
	file := filepath.Join(root, "operators", "join", "operatorstate.go")
	old, err := os.ReadFile(file)
	if err != nil {
		u.t.Fatal(err)
	}
	const section, versions = `Name: "join", Operator: j, `, `Version: 2, Oldest: 1,`
	if strings.Count(string(old), section+versions) != 1 {
		u.t.Fatalf("%s does not have %q", file, section+versions)
	}
	later := strings.Replace(string(old), section+versions, section+"Version: 9,", 1)
	u.s.binary = buildOverlaid(u.t, map[string][]byte{file: []byte(later)})
	u.p = u.p[:1]
	u.start(0)
	var said []string
	u.p[0].wait(20*time.Second, "refuse the state", func() bool {
		var answer struct {
			Process struct{ Failing []struct{ Cause string } }
		}
		if u.p[0].get("/api/v1/status", &answer) != nil {
			return false
		}
		said = said[:0]
		for _, f := range answer.Process.Failing {
			said = append(said, f.Cause)
		}
		return len(said) > 0
	})
	if !strings.Contains(said[0], "section operator/join has version ") ||
		!strings.Contains(said[0], "this build reads version 9") {
		u.t.Errorf("a state of another version is refused as %q", said[0])
	}
	u.t.Logf("a later build says: %s", said[0])
	u.p[0].stop()
	u.s.binary = before
	u.start(0)
	if again := u.drain(total); !maps.Equal(again.models, v.models) {
		u.t.Errorf("after a build that refused the state it is %v, want %v", again.models, v.models)
	}
	u.p[0].stop()
}

// oldBuild is the commit before the working tree, as a program: the newest where there are changes, else its parent.
// Where that one has other numbers or formats on purpose, it is the working tree under another name.
func oldBuild(t *testing.T) (commit, program string) {
	t.Helper()
	commit = os.Getenv("PLUMBLINE_OLD")
	asked := commit != ""
	if !asked {
		commit = "HEAD"
		if out, err := git("status", "--porcelain", "--", "*.go"); err == nil && out == "" {
			if _, err := git("rev-parse", "--verify", "HEAD~1"); err == nil {
				commit = "HEAD~1"
			}
		}
	}
	name, err := git("rev-parse", "--short", commit)
	if err != nil {
		t.Fatalf("PLUMBLINE_OLD: %v", err)
	}
	if !asked && !sameNumbers(commit) {
		t.Logf("%s has other goldens or format versions: both builds are of the working tree", name)
		return "the working tree", buildStamped(t, root, oldStamp)
	}
	dir := t.TempDir()
	archive := filepath.Join(dir, "old.tar")
	if _, err := git("archive", "-o", archive, commit); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("tar", "-C", dir, "-xf", archive).CombinedOutput(); err != nil {
		t.Fatalf("unpack: %v\n%s", err, out)
	}
	return name, buildStamped(t, dir, oldStamp)
}

// sameNumbers reports whether a commit has the oracle's goldens and the format versions of the working tree.
func sameNumbers(commit string) bool {
	_, err := git("diff", "--quiet", commit, "--", "internal/oracle/testdata")
	versions := func(of ...string) string {
		args := append([]string{"grep", "-hE", "[vV]ersion(:| +=) +[0-9]+"}, of...)
		lines, _ := git(append(args, "--", "*.go", ":!*_test.go", ":!bench")...)
		return lines
	}
	now := versions()
	return err == nil && now != "" && now == versions(commit)
}

func git(args ...string) (string, error) {
	out, err := exec.Command("git", append([]string{"-C", root}, args...)...).Output()
	if err != nil {
		err = fmt.Errorf("git %s: %w", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), err
}

// buildStamped builds the program of a source tree with a version of its own.
func buildStamped(t *testing.T, source, stamp string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "plumbline")
	build := exec.Command("go", "build", "-trimpath", "-ldflags",
		"-X github.com/plumbline/plumbline/internal/buildinfo.version="+stamp, "-o", path, "./cmd/plumbline")
	build.Dir, build.Env = source, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", source, err, out)
	}
	return path
}
