//go:build integration

package integration

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/plumbline/plumbline/internal/feed"
)

// suite is the fault suite: three brokers, an input, and how an undisturbed run of it ends.
type suite struct {
	cluster *cluster
	input   input
	full    bool
	over    time.Duration // in which the input of a scenario is sent; 0 = as fast as the brokers take it
	kills   int
	killing time.Duration // in which the input is sent that is disturbed by kills at random moments
	want    result
	random  *rand.Rand
	table   map[string]tableRow // by scenario
}

// What all scenarios have unless they say otherwise.
const (
	faultPartitions = 6
	faultProcesses  = 3
	faultInterval   = 300 * time.Millisecond // between checkpoints
	fullInterval    = time.Second            // the same for states of 5 M rows
	faultMemory     = 64 << 10               // of waiting rows: most of them are on disk
)

// killTime is in which the kills of the full form come.
const killTime = 5 * time.Minute

// drainLimit bounds what is waited for after the last row: everything, in the full form, rebalances, a coordinator that
// moves, a machine with other work.
const drainLimit = 15 * time.Minute

// TestFaults runs three processes on three brokers and disturbs them: whatever happens, the states, snapshots and
// calibrators are in the end those of an undisturbed run, and every row has one fate.
//
// PLUMBLINE_FAULTS=short or full turns it on (`make faults`), PLUMBLINE_FAULTS_ROWS sets the number of rows,
// PLUMBLINE_FAULTS_SEED the random moments. PLUMBLINE_FAULTS_RESULT names a file for the result of the undisturbed run:
// where it exists it is read, so that scenarios can be run one by one.
func TestFaults(t *testing.T) {
	s := newSuite(t)
	defer s.publish(t)
	// Checkpoints are in a directory, or in a topic; most waiting rows are on disk in all of them.
	for _, store := range []string{"directory", "topic"} {
		run := func(name string, scenario func(*testing.T, deployOptions)) {
			o := s.options()
			if o.store = store; store == "topic" {
				name += "-topic-store"
			}
			t.Run(name, func(t *testing.T) { scenario(t, o) })
		}
		run("kill", s.killAtRandom)
		run("zombie", s.zombie)
		run("zombie-behind", s.zombieBehind)
		run("broker-leader", s.killLeader)
		run("sink-refuses", s.sinkRefuses)
		if store == "directory" {
			run("damaged-checkpoint", s.damagedCheckpoint)
			run("damaged-sparse", s.damagedSparse)
		} else {
			run("damaged-checkpoint", s.claimsWithoutBody)
		}
	}
	t.Run("rolling-restart", s.rollingRestart)
	t.Run("brokers-in-turn", s.killBrokersInTurn)
	t.Run("brokers-all", s.killAllBrokers)
	t.Run("full-disk", s.fullDisk)
	t.Run("duplicates", s.duplicates)
	t.Run("reordered", s.reordered)
	t.Run("clock-jumps", s.clockJumps)
	t.Run("metamorphic", s.metamorphic)
}

func newSuite(t *testing.T) *suite {
	t.Helper()
	s := &suite{}
	switch mode := os.Getenv("PLUMBLINE_FAULTS"); mode {
	case "":
		t.Skip("minutes of real faults: set PLUMBLINE_FAULTS=short or full (make faults)")
	case "short":
		s.input.rows, s.over, s.killing, s.kills = 200_000, 45*time.Second, 45*time.Second, 6
	case "full":
		s.input.rows, s.killing, s.kills, s.full = 5_000_000, killTime, 50, true
	default:
		t.Fatalf("PLUMBLINE_FAULTS is %q, want short or full", mode)
	}
	if rows := os.Getenv("PLUMBLINE_FAULTS_ROWS"); rows != "" {
		n, err := strconv.ParseInt(rows, 10, 64)
		if err != nil || n < 50_000 {
			t.Fatalf("PLUMBLINE_FAULTS_ROWS is %q, want a number of rows, 50000 or more: fewer fit no calibrator", rows)
		}
		s.input.rows = n
	}
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("PLUMBLINE_FAULTS_SEED"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("PLUMBLINE_FAULTS_SEED is %q, want a number", text)
		}
		seed = n
	}
	t.Logf("PLUMBLINE_FAULTS_SEED=%d", seed)
	s.random = rand.New(rand.NewPCG(seed, 0))
	s.input.models, s.input.partitions, s.input.batch, s.input.flush = loadModels(t), faultPartitions,
		feed.DefaultBatch, 3*time.Second
	s.oldTable(t)
	s.cluster = startCluster(t)
	if s.remember(t) {
		return s
	}
	if !t.Run("undisturbed", s.undisturbed) {
		t.FailNow()
	}
	if s.want.hash == "" { // t.Run of what -run leaves out is a success
		t.Fatalf("-run leaves out the undisturbed run, and %s names no file of an earlier one: "+
			"name both, as in TestFaults/(undisturbed|kill)", resultVariable)
	}
	return s
}

func (s *suite) options() deployOptions {
	o := deployOptions{partitions: faultPartitions, processes: faultProcesses, interval: faultInterval,
		store: "directory", memory: faultMemory}
	if s.full {
		o.interval = fullInterval
	}
	return o
}

// undisturbed makes the result that all others must have.
func (s *suite) undisturbed(t *testing.T) {
	begin := time.Now()
	step := func(what string) { t.Logf("%s after %.1f s", what, time.Since(begin).Seconds()) }
	d := s.deploy(t, s.options())
	d.start()
	d.ready(2 * time.Minute)
	step("assigned")
	p := d.produce(s.input, 0)
	p.wait(t, drainLimit)
	step("sent")
	sent := time.Now()
	rows := s.input.total()
	v := d.drain(rows, rows, drainLimit)
	step("drained")
	d.took, d.drained = time.Since(begin), time.Since(sent)
	d.stop()
	step("stopped")
	s.want = d.result(v)
	step("read")
	conserve(t, s.want.counts, rows)
	compare(t, s.want, s.want)
	if ended := d.unexpected(); len(ended) > 0 {
		t.Errorf("processes ended by themselves: %v", ended)
	}
	s.store(t)
	t.Logf("%d rows: hash %s, %d last snapshots, %d calibrators, %d alerts", rows, s.want.hash, len(s.want.snapshots),
		len(s.want.calibrators), len(s.want.alerts))
}

// disturbed sends the input over the suite's time while disturb does its worst, and compares what comes out. All
// processes run when disturb returns.
func (s *suite) disturbed(t *testing.T, d *deployment, disturb func(p *producer)) {
	t.Helper()
	s.disturbedOver(t, d, s.over, disturb)
}

func (s *suite) disturbedOver(t *testing.T, d *deployment, over time.Duration, disturb func(p *producer)) {
	t.Helper()
	d.start()
	d.ready(2 * time.Minute)
	p := d.produce(s.input, over)
	disturb(p)
	p.wait(t, over+drainLimit)
	s.finish(t, d)
}

// finish drains, stops and compares.
func (s *suite) finish(t *testing.T, d *deployment) {
	t.Helper()
	rows := s.input.total()
	v := s.drained(d, rows)
	d.stop()
	got := d.result(v)
	conserve(t, got.counts, rows)
	compare(t, got, s.want)
	s.quiet(t, d)
}

// drained waits for the end, and notes how long it took.
func (s *suite) drained(d *deployment, rows int64) view {
	d.t.Helper()
	begin := time.Now()
	v := d.drain(rows, rows, drainLimit)
	d.took, d.drained = time.Since(d.began), time.Since(begin)
	d.t.Logf("drained %v after the last row", d.drained.Round(100*time.Millisecond))
	return v
}

// quiet checks that no process ended by itself, and that none met what must not be.
func (s *suite) quiet(t *testing.T, d *deployment) {
	t.Helper()
	if ended := d.unexpected(); len(ended) > 0 {
		t.Errorf("processes ended by themselves: %v", ended)
	}
	for _, text := range []string{"panic:", "pane messages were lost", "pane message cannot be used"} {
		if n := d.logged(text); n > 0 {
			t.Errorf("%d log lines hold %q, want none", n, text)
		}
	}
}

// during is a random part of a time.
func (s *suite) during(limit time.Duration) time.Duration {
	return time.Duration(s.random.Int64N(int64(limit) + 1))
}

// progress waits until the processes have taken a share of the rows.
func (s *suite) progress(t *testing.T, d *deployment, share float64) {
	t.Helper()
	var most int64
	within(t, s.over+drainLimit, fmt.Sprintf("take %.0f %% of the rows", 100*share), func() error {
		most = max(most, d.view().counts["predictions"]) // fewer where a process is away
		if float64(most) < share*float64(s.input.total()) {
			return fmt.Errorf("%d rows", most)
		}
		return nil
	})
}
