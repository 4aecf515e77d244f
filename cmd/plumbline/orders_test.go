package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/internal/engine"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
	"github.com/plumbline/plumbline/sinks/history"
	"github.com/plumbline/plumbline/web"
)

// orderLog keeps what is written to the panes topic, and the orders on the decisions topic.
type orderLog struct {
	orders  []*pipeline.Order
	refused []record.Order
	err     error
}

func (l *orderLog) Write(_ context.Context, ms []pipeline.Message) error {
	for _, m := range ms {
		if m.Stream == pipeline.StreamHistory {
			var d record.Decision
			var o record.Order
			err := errors.Join(json.Unmarshal(m.Value, &d), json.Unmarshal(d.Record, &o))
			if err != nil || d.Kind != record.DecisionOrder || string(m.Key) != o.Model || d.Model != o.Model ||
				d.Version != o.Version || m.Partition != -1 {
				return errors.Join(err, errors.New("not an order by model"))
			}
			l.refused = append(l.refused, o)
			continue
		}
		o, err := pipeline.DecodeOrder(m.Value)
		if err != nil || m.Stream != pipeline.StreamPanes || m.Partition != -1 || string(m.Key) != o.Model {
			return errors.Join(err, errors.New("not an order by model"))
		}
		l.orders = append(l.orders, o)
	}
	return l.err
}

func (l *orderLog) Close() error { return nil }

// TestCalibratorsCommand gives orders from the command line through the API of a process to the panes topic.
func TestCalibratorsCommand(t *testing.T) {
	rt := engine.New(config.Default(), slog.New(slog.DiscardHandler))
	const cal = `{"version":1,"method":"temperature","temperature":1.5}`
	for i, revision := range []int{1, 2} {
		rt.History.AddCalibrator(record.Calibrator{Model: "m/1", Version: "v", Revision: revision, Published: true,
			Reason: "period", Outcome: "published: temperature",
			DecidedAt: moment([]string{"2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"}[i]), Calibrator: []byte(cal),
			Build: "v9 (abc)",
			Evidence: record.Evidence{FitRows: 7, FitFrom: record.At(1e9), FitTo: record.At(2e9),
				FitBegan: record.At(3e9), FitDigest: "sha256:feed"}})
	}
	log := &orderLog{}
	srv := httptest.NewServer(web.New(web.Deps{History: rt.History, Control: &rt.Pauser,
		Orders: engine.OrderTaker{Engine: rt, Sink: log, Scan: nil}}))
	defer srv.Close()
	file := filepath.Join(t.TempDir(), "cal.json")
	if err := os.WriteFile(file, []byte(cal), 0o600); err != nil {
		t.Fatal(err)
	}
	f := func(want, args string, order pipeline.Order) {
		t.Helper()
		log.orders = nil
		var out strings.Builder
		cmd := newRootCommand()
		cmd.SetOut(&out)
		cmd.SetErr(&out)
		cmd.SetArgs(append(append([]string{"calibrators"}, strings.Fields(args)...), "--url", srv.URL))
		err := cmd.ExecuteContext(t.Context())
		text := out.String()
		if err != nil {
			text = err.Error()
		}
		if !strings.Contains(text, want) {
			t.Errorf("%s: %s, want %q in it", args, text, want)
		}
		var got pipeline.Order
		if len(log.orders) > 0 {
			got = *log.orders[0]
			got.ID = [16]byte{}
		}
		if got.Action != order.Action || got.Model != order.Model || got.Version != order.Version ||
			got.Revision != order.Revision || string(got.Calibrator) != string(order.Calibrator) ||
			got.By != order.By || got.Why != order.Why {
			t.Errorf("%s: order %+v, want %+v", args, got, order)
		}
	}
	f("revision 2", "list m/1", pipeline.Order{})
	f("fitted on 7 rows, 1970-01-01T00:00:01Z to 1970-01-01T00:00:02Z, begun 1970-01-01T00:00:03Z: "+
		"sha256:feed, by v9 (abc)", "list m/1", pipeline.Order{})
	f("pin of m/1/v by ann", "pin m/1 --why audit --by ann", pipeline.Order{Action: "pin", Model: "m/1", Version: "v",
		By: "ann", Why: "audit"})
	f("unpin of m/1/v", "unpin m/1 --why over --by ann", pipeline.Order{Action: "unpin", Model: "m/1", Version: "v",
		By: "ann", Why: "over"})
	f("rollback of m/1/v", "rollback m/1 --revision 1 --why worse --by ann",
		pipeline.Order{Action: "rollback", Model: "m/1", Version: "v", Revision: 1, Calibrator: []byte(cal), By: "ann",
			Why: "worse"})
	f("publish of m/1/w", "publish "+file+" m/1 --model-version w --why mine --by ann",
		pipeline.Order{Action: "publish", Model: "m/1", Version: "w", Calibrator: []byte(cal), By: "ann", Why: "mine"})
	if len(log.refused) > 0 {
		t.Errorf("orders that were given are refused: %+v", log.refused)
	}
	f("revision 9 of m/1/v is not in the history, allowed are 1 to 2", "rollback m/1 --revision 9 --why x --by ann",
		pipeline.Order{})
	f("version: must be named", "pin other --why x", pipeline.Order{})
	f("calibrator", "publish "+writeFile(t, "cut.json",
		`{"version":1,"method":"temperature","temperature":-1}`)+" m/1 --why x", pipeline.Order{})
	wantRefused(t, log.refused, "rollback m/1/v to revision 9: allowed are 1 to 2", "pin other: version: must be named")
	f("--why", "pin m/1", pipeline.Order{})
	rt.History.AddCalibrator(record.Calibrator{Model: "m/1", Version: "typo", Reason: "manual",
		Outcome: "refused: pin by bob: the model has no such version", DecidedAt: moment("2026-01-03T00:00:00Z")})
	f("pin of m/1/v", "pin m/1 --why x --by ann", pipeline.Order{Action: "pin", Model: "m/1", Version: "v", By: "ann",
		Why: "x"})
	log.err = errors.New("no leader")
	f("no leader", "pin m/1 --why x --by ann", pipeline.Order{Action: "pin", Model: "m/1", Version: "v", By: "ann",
		Why: "x"})
}

// TestCalibratorsRefuses: what is wrong with a command line is said in words, by whoever finds it, with the exit code
// that it has.
func TestCalibratorsRefuses(t *testing.T) {
	rt := engine.New(config.Default(), slog.New(slog.DiscardHandler))
	srv := httptest.NewServer(web.New(web.Deps{History: rt.History, Control: &rt.Pauser,
		Orders: engine.OrderTaker{Engine: rt, Sink: &orderLog{}, Scan: nil}}))
	defer srv.Close()
	off := writeFile(t, "off.yaml", "http: {listen: ''}")
	for args, want := range map[string]struct {
		code int
		text string
	}{
		"calibrators":      {exitUsage, "a subcommand is needed: list, pin, publish, rollback, unpin"},
		"calibrators lits": {exitUsage, `unknown command "lits"; nearest is list`},
		"calibrators list m --limit 0 --url " +
			srv.URL: {exitUsage, "--limit 0: must be 1 or more"},
		"calibrators list m --url 127.0.0.1:8080": {exitUsage,
			`--url "127.0.0.1:8080": must be http://host:port or https://host:port`},
		"resume --url ftp://host": {exitUsage,
			`--url "ftp://host": must be http`},
		"pause --why x --user ann --url " + srv.URL: {exitUsage,
			`--user "ann", --password-file "": both or neither`},
		"calibrators list m --password-file x --url " +
			srv.URL: {exitUsage, `--user "", --password-file "x": both or neither`},
		"calibrators list m --url http://127.0.0.1:1": {exitFailed,
			"http://127.0.0.1:1: no process answers there (plumbline run is one; --url names another): dial tcp"},
		"calibrators list m -c " + off: {exitUsage, "http.listen is empty"},
		"calibrators pin m --why x --revision 0 --url " +
			srv.URL: {exitUsage, "--revision 0: must be a whole number from 1"},
		"calibrators pin m --why \u00a0 --url " + srv.URL: {exitUsage, "--why: must say why"},
		"calibrators pin m --why x --url " + srv.URL: {exitFailed, srv.URL +
			": order cannot be carried out: version: must be named, " +
			"nothing is known of model \"m\" here (409 Conflict)\n"},
		"calibrators list m --model-version 7 --url " + srv.URL:               {exitDone, "no decisions about m/7\n"},
		"calibrators pin m --why x --model-version 1 --url " + srv.URL + "/p": {exitFailed, srv.URL + "/p: "},
	} {
		code, out, errOut := runCommand(t, strings.Split(args, " ")...)
		if code != want.code || !strings.Contains(out+errOut, want.text) {
			t.Errorf("%s: exit code %d, %s%s; want %d, %q", args, code, out, errOut, want.code, want.text)
		}
	}
	rt.Config.Kafka.MessageMax = 160
	large := writeFile(t, "large.json", `{"version":1,"method":"vector","params":{"w":[`+strings.Repeat("1,",
		40)+`1],"b":[`+strings.Repeat("0,", 40)+`0]}}`)
	if code, _, errOut := runCommand(t, "calibrators", "publish", large, "m", "--model-version", "1", "--why", "x",
		"--url", srv.URL); code != exitFailed ||
		!strings.Contains(errOut, "bytes: must be at most 150, 15/16 of kafka.message_max_bytes (409") {
		t.Errorf("a calibrator that no topic takes: exit code %d, %s", code, errOut)
	}
	// A process is asked by others than this command, too.
	_, err := engine.OrderTaker{Engine: rt, Sink: &orderLog{}, Scan: nil}.Order(t.Context(),
		web.Order{Action: "pin", Model: "m", Version: "1", Why: " \t"})
	if !errors.Is(err, web.ErrOrder) || !strings.Contains(err.Error(), "why: must not be empty") {
		t.Errorf("an order for no reason: %v", err)
	}
}

// TestKnownWithoutCalibrator: a model version about which something was decided is known in every process, with the
// identity, before the first calibrator; one that is in a refused order only is not.
func TestKnownWithoutCalibrator(t *testing.T) {
	rt := engine.New(config.Default(), slog.New(slog.DiscardHandler))
	latest := engine.LatestCalibrators{Engine: rt}
	rt.History.AddCalibrator(record.Calibrator{Model: "m", Version: "typo", Reason: "manual",
		Outcome: "refused: pin by bob: the model has no such version", DecidedAt: moment("2026-01-03T00:00:00Z")})
	if f, _, ok := latest.Latest("m", ""); ok {
		t.Errorf("known by a refused order: %+v", f)
	}
	rt.History.AddCalibrator(record.Calibrator{Model: "m", Version: "7", Reason: "period", Outcome: "no change: …",
		DecidedAt: moment("2026-01-03T00:00:00Z")})
	for _, version := range []string{"", "7"} {
		if f, _, ok := latest.Latest("m", version); !ok || f.Version != "7" || f.Revision != 0 ||
			f.Calibrator != calibrator.Calibrator(calibrator.Identity{}) {
			t.Errorf("version %q: %+v, %v; want the identity of 7 at revision 0", version, f, ok)
		}
	}
	if _, _, ok := latest.Latest("m", "8"); ok {
		t.Error("version 8 is known")
	}
}

// deciding is a model task that decides about every order at once.
type deciding struct {
	*orderLog
	rt             *engine.Engine
	state, outcome string
	another        bool // it decides about an order of somebody else, with the same words
}

func (d deciding) Write(ctx context.Context, ms []pipeline.Message) error {
	if err := d.orderLog.Write(ctx, ms); err != nil || len(d.orders) == 0 {
		return err
	}
	o := d.orders[len(d.orders)-1]
	if d.another {
		o.ID = pipeline.NewOrderID()
	}
	d.rt.History.AddCalibrator(record.Calibrator{Model: o.Model, Version: o.Version, Revision: 4, Reason: "manual",
		State: d.state, Outcome: d.outcome, By: o.By, Why: o.Why, Order: hex.EncodeToString(o.ID[:]),
		DecidedAt: moment("2026-01-05T00:00:00Z"), EffectiveFrom: moment("2026-01-05T00:00:00Z")})
	return nil
}

// TestOrderWaits: with --wait the command says what came of the order, and not of an older one or of another's.
func TestOrderWaits(t *testing.T) {
	rt := engine.New(config.Default(), slog.New(slog.DiscardHandler))
	for _, c := range []struct {
		state, outcome, wait string
		code                 int
		want                 string
	}{
		{record.DecidedPinned, "pin by ann", "20s", exitDone,
			"m/1: pin by ann, revision 4 from 2026-01-05T00:00:00Z on\n"},
		{record.DecidedRefused, "refused: pin by ann: the model has no such version", "20s",
			exitFailed, "refused: pin by ann: the model has no such version"},
		{record.DecidedPinned, "pin by ann", "1ms", exitFailed,
			"is on its way, and no decision about it has come within 1ms"},
		{record.DecidedPinned, "pin by nobody", "0s", exitDone, "is on its way"},
	} {
		rt.History = history.New(history.Config{})
		for _, by := range []string{"ann", "bob"} {
			rt.History.AddCalibrator(record.Calibrator{Model: "m", Version: "1", Revision: 3, Reason: "manual",
				Outcome: "pin by " + by, By: by, Why: "x", DecidedAt: moment("2026-01-04T00:00:00Z")})
		}
		srv := httptest.NewServer(web.New(web.Deps{History: rt.History, Control: &rt.Pauser,
			Orders: engine.OrderTaker{Engine: rt,
				Sink: deciding{&orderLog{}, rt, c.state, c.outcome, c.wait == "1ms"}, Scan: nil}}))
		code, out, errOut := runCommand(t, "calibrators", "pin", "m", "--why", "x", "--by", "ann", "--model-version",
			"1", "--wait", c.wait, "--url", srv.URL)
		srv.Close()
		if code != c.code || !strings.Contains(out+errOut, c.want) {
			t.Errorf("%s: exit code %d, %s%s; want %d, %q", c.outcome, code, out, errOut, c.code, c.want)
		}
	}
}

// wantRefused holds refused orders against "action about: part of the reason".
func wantRefused(t *testing.T, got []record.Order, want ...string) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%d refused orders, want %d: %+v", len(got), len(want), got)
		return
	}
	for i, o := range got {
		head, reason, _ := strings.Cut(want[i], ": ")
		if o.Action+" "+o.About() != head || !strings.Contains(o.Refused, reason) || o.Kind != record.CalibratorOrder ||
			o.Schema != 1 || len(o.ID) != 32 || o.By == "" || o.Why != "x" {
			t.Errorf("refused order %+v, want %s", o, want[i])
		}
		if o.At.IsZero() {
			t.Errorf("refused order %+v has no time", o)
		}
	}
}

// TestOrdersSayWhy: no order is taken from the command line without a reason.
func TestOrdersSayWhy(t *testing.T) {
	const url = "http://127.0.0.1:1"
	for _, args := range [][]string{
		{"pause", "--url", url},
		{"heads", "pin", "m/1+head1"}, {"heads", "rollback", "m/1+head1"},
		{"heads", "auto", "m/1+head1"},
		{"trainer", "cancel", "m/1+head1"},
		{"calibrators", "pin", "m", "--url", url}, {"calibrators", "unpin", "m", "--url", url},
		{"calibrators", "rollback", "m", "--url", url}, {"calibrators", "publish", "x.json", "m", "--url", url},
		{"models", "set-classes", "m", "1", "3", "--url", url},
		{"scale", "--partitions", "9"}, {"state", "reset", "--task", "shards/3"},
	} {
		for _, why := range [][]string{nil, {"--why", " "}} {
			code, _, stderr := runCommand(t, append(args, why...)...)
			if code != exitUsage || !strings.Contains(stderr, "--why: must say why") {
				t.Errorf("%q %q: exit code %d, %s", args, why, code, stderr)
			}
		}
	}
}
