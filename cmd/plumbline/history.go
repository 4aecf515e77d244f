package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/plumbline/plumbline/internal/cli"
	"github.com/plumbline/plumbline/internal/control"
	"github.com/plumbline/plumbline/internal/engine"
	"github.com/plumbline/plumbline/internal/engine/decisionlog"
	"github.com/plumbline/plumbline/internal/printable"
	"github.com/plumbline/plumbline/pipeline/record"
	"github.com/plumbline/plumbline/sinks/registry"
)

// historyFlags are those of `plumbline history`.
type historyFlags struct {
	processFlags
	version, kind, since, until string
	limit                       int
	direct, record              bool
}

func newHistoryCommand() *cobra.Command {
	var f historyFlags
	cmd := &cobra.Command{
		Use:   "history MODEL",
		Short: "What was decided about a model: calibrators, alerts, heads, orders, with their evidence",
		Long:  help("history"),
		Example: "  plumbline history digits --kind calibrator --since 2026-03-01T00:00:00Z\n" +
			"  plumbline history digits --limit 0 --json > digits.json",
		Args: cli.Args(cobra.ExactArgs(1)),
	}
	f.add(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.version, "model-version", "", "`version` of the model")
	flags.StringVar(&f.kind, "kind", "",
		"`kinds` with commas: "+strings.Join(record.DecisionKinds, ", ")+"; default: all")
	flags.StringVar(&f.since, "since", "", "`time` of the oldest entry (RFC 3339)")
	flags.StringVar(&f.until, "until", "", "`time` that all entries are before (RFC 3339)")
	flags.IntVar(&f.limit, "limit", 50, "newest so many; 0: all")
	flags.BoolVar(&f.record, "records", false, "also print the records with their evidence")
	flags.BoolVar(&f.direct, "database", false, "read the configured database, without a running process")
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0]) }
	return cmd
}

// historyPage is how many entries are asked for at once.
const historyPage = 500

func (f *historyFlags) run(cmd *cobra.Command, model string) error {
	q, err := f.query(model, jsonOutput(cmd))
	if err != nil {
		return err
	}
	ask, done, err := f.source(cmd)
	if err != nil {
		return err
	}
	defer done()
	all := decisionlog.Page{Entries: []registry.Entry{}}
	for {
		if q.Limit = historyPage; f.limit > 0 {
			q.Limit = min(q.Limit, f.limit-len(all.Entries))
		}
		page, err := ask(q)
		if err != nil {
			return err
		}
		all.Entries, all.Behind = append(all.Entries, page.Entries...), page.Behind
		if page.Next == "" || len(all.Entries) == f.limit {
			all.Next = page.Next
			return f.print(cmd, &all)
		}
		q.Cursor = page.Next
	}
}

// query is what the flags ask for.
func (f *historyFlags) query(model string, records bool) (registry.Search, error) {
	q := registry.Search{Model: model, Version: f.version, Records: f.record || records}
	if f.limit < 0 {
		return q, cli.Usagef("--limit %d: must be 0 or more", f.limit)
	}
	if f.kind != "" {
		q.Kinds = strings.Split(f.kind, ",")
	}
	for _, kind := range q.Kinds {
		if !slices.Contains(record.DecisionKinds, kind) {
			return q, cli.Usagef("--kind %q: must be some of %s, with commas", kind,
				strings.Join(record.DecisionKinds, ", "))
		}
	}
	var err error
	if q.Since, err = flagTime("since", f.since); err != nil {
		return q, err
	}
	q.Until, err = flagTime("until", f.until)
	return q, err
}

// flagTime reads a time, ns; nil where there is none.
func flagTime(flag, text string) (*int64, error) {
	if text == "" {
		return nil, nil
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return nil, cli.Usagef("--%s %q: must be a time such as 2026-01-31T12:00:00Z", flag, text)
	}
	ns := record.Nearest(at)
	return &ns, nil
}

// source is whom to ask.
func (f *historyFlags) source(cmd *cobra.Command) (
	ask func(registry.Search) (decisionlog.Page, error), done func(), err error) {
	if !f.direct {
		return func(q registry.Search) (decisionlog.Page, error) { return f.askProcess(cmd, q) }, func() {}, nil
	}
	store, err := openHistoryStore(cmd)
	if err != nil {
		return nil, nil, err
	}
	return func(q registry.Search) (decisionlog.Page, error) {
		page, err := store.Query(cmd.Context(), q)
		return decisionlog.Page{Entries: page.Entries, Next: page.Next, Behind: -1}, err
	}, func() { _ = store.Close() }, nil
}

// openHistoryStore opens the configured database.
func openHistoryStore(cmd *cobra.Command) (*registry.Store, error) {
	cfg, _, err := setup(cmd)
	if err != nil {
		return nil, err
	}
	if cfg.History.Store == registry.Off {
		return nil, errors.New("history.store is off: there is no database")
	}
	file := engine.HistoryFile(&cfg)
	if _, err := os.Stat(file); err != nil && cfg.History.Store == registry.File {
		return nil, fmt.Errorf("history.path: no process has filled a database here: %w", err)
	}
	return decisionlog.Open(cfg.History, file)
}

func (f *historyFlags) askProcess(cmd *cobra.Command, q registry.Search) (page decisionlog.Page, err error) {
	v := url.Values{"limit": {strconv.Itoa(q.Limit)}, "detail": {"none"}}
	if q.Records {
		v.Set("detail", "full")
	}
	for name, value := range map[string]string{
		"version": q.Version,
		"kind":    strings.Join(q.Kinds, ","),
		"since":   f.since,
		"until":   f.until,
		"cursor":  q.Cursor,
	} {
		if value != "" {
			v.Set(name, value)
		}
	}
	path := "models/" + url.PathEscape(q.Model) + "/history"
	err = f.ask(cmd, control.Request{Method: http.MethodGet, Path: path, Query: v}, &page)
	return page, err
}

func (f *historyFlags) print(cmd *cobra.Command, p *decisionlog.Page) error {
	if jsonOutput(cmd) {
		return printJSON(cmd, p)
	}
	if len(p.Entries) == 0 {
		printf(cmd, "no entries\n")
	}
	w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	for i := range p.Entries {
		e := &p.Entries[i]
		of := e.Version
		if e.Slice != "" {
			of += " " + e.Slice
		}
		_, _ = printable.Fprintf(w, "%s\t%s\t%s\t%s\t%s%s\n", e.At, of, e.Kind, e.State, e.Summary,
			signed(e.By, e.Why))
		if len(e.Record) > 0 {
			fmt.Fprintf(w, "\t%s\n", e.Record)
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if p.Next != "" {
		printf(cmd, "… and older ones: --limit 0 has all\n")
	}
	if p.Behind > 0 {
		printf(cmd, "the database is %d offsets behind the topics\n", p.Behind)
	}
	return nil
}
