package main

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/plumbline/plumbline/internal/cli"
	"github.com/plumbline/plumbline/internal/control"
	"github.com/plumbline/plumbline/internal/printable"
	"github.com/plumbline/plumbline/pipeline"
)

func newModelsCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "models", Short: "List model versions; settle the number of classes of one"}
	cli.Group(cmd)
	cmd.AddCommand(newModelsList(), newSetClasses())
	return cmd
}

// modelList is the answer of GET /api/v1/models, as far as it is printed.
type modelList struct {
	Models []struct {
		Model    string `json:"model"`
		Versions []struct {
			Version string        `json:"version"`
			Classes int           `json:"classes"`
			Settled bool          `json:"settled"`
			Others  map[int]int64 `json:"others"`
			Firing  int           `json:"alerts_firing"`
		} `json:"versions"`
	} `json:"models"`
	Total    int `json:"total"`
	Matching int `json:"matching"`
	Shown    int `json:"shown"`
}

func newModelsList() *cobra.Command {
	var f processFlags
	var search string
	limit := 500
	cmd := &cobra.Command{
		Use:   "list",
		Short: "Model versions of a process, with their numbers of classes",
		Args:  cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 1 {
				return cli.Usagef("--limit %d: must be 1 or more", limit)
			}
			q := url.Values{"limit": {strconv.Itoa(limit)}}
			if search != "" {
				q.Set("search", search)
			}
			var a modelList
			err := f.ask(cmd, control.Request{Method: http.MethodGet, Path: "models", Query: q}, &a)
			if err != nil {
				return err
			}
			return printReport(cmd, cmd.OutOrStdout(), &a)
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&search, "search", "", "`text` in model or version")
	cmd.Flags().IntVar(&limit, "limit", limit, "most versions, those with the most labelled rows")
	return cmd
}

// Print writes a line for each version.
func (a *modelList) Print(w io.Writer) error {
	for _, m := range a.Models {
		for i := range m.Versions {
			v := &m.Versions[i]
			fmt.Fprintf(w, "%s/%s", printable.Text(m.Model), printable.Text(v.Version))
			if v.Classes > 0 {
				fmt.Fprintf(w, "  K = %d", v.Classes)
			}
			if v.Classes > 0 && !v.Settled {
				fmt.Fprint(w, ", not settled yet")
			}
			for _, k := range slices.Sorted(maps.Keys(v.Others)) {
				fmt.Fprintf(w, "; %d predictions of K = %d do not count", v.Others[k], k)
			}
			if v.Firing > 0 {
				fmt.Fprintf(w, "  %d alerts fire", v.Firing)
			}
			fmt.Fprintln(w)
		}
	}
	if a.Shown < a.Matching {
		fmt.Fprintf(w, "first %d of %d: --search or --limit show others\n", a.Shown, a.Matching)
	}
	return nil
}

func newSetClasses() *cobra.Command {
	var f orderFlags
	cmd := &cobra.Command{
		Use:   "set-classes MODEL VERSION K",
		Short: "Let a model version have K classes: statistics of another number end, and all shards follow",
		Long:  help("models-set-classes"),
		Args:  cli.Args(cobra.ExactArgs(3)),
		RunE: func(cmd *cobra.Command, args []string) error {
			k, err := strconv.Atoi(args[2])
			if err != nil || k < 2 {
				return cli.Usagef("K %q: must be a whole number from 2", args[2])
			}
			f.version, f.classes = args[1], k
			return runDecision(cmd, pipeline.ActionClasses, args[:1], f)
		},
	}
	f.add(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.why, "why", "", "`reason`, kept with the decision")
	flags.StringVar(&f.by, "by", userName(), "`name` of the person who decides (default: the user)")
	return cmd
}
