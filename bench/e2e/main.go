package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"strings"
	"time"

	"github.com/plumbline/plumbline/internal/section"
)

func main() {
	if len(os.Args) > 3 && (os.Args[1] == "kafka-go" || os.Args[1] == "franz-go") {
		exit(bare(os.Args[1], os.Args[2], os.Args[3:]))
	}
	var b bench
	flag.StringVar(&b.broker, "kafka", os.Getenv("PLUMBLINE_KAFKA"), "broker, host:port")
	flag.StringVar(&b.plumbline, "plumbline", "bin/plumbline", "the program")
	flag.StringVar(&b.python, "python", ".cache/e2e-venv/bin/python", "Python with the packages of requirements.txt")
	flag.StringVar(&b.jars, "jars", "deploy/kafka/target/lib/*:.cache/kafka-tools/*", "class path of Kafka's tools")
	flag.StringVar(&b.dir, "dir", os.TempDir(), "folder for states")
	flag.StringVar(&b.profiles, "profiles", "", "folder for a processor profile of plumbline in each cell")
	set := flag.String("set", "star", "cells: short, star, json or full")
	only := flag.String("only", "", "cells whose name this regular expression matches")
	latencies := flag.String("latency", "", "measure latency instead: quiet, or refits (beside the same without them)")
	points := flag.String("steady", "",
		"measure cores at steady rates instead: K/rows a second/slices/models[/inline+keyed], …")
	delay := flag.Duration("delay", 2*time.Second, "within which labels of these come, evenly")
	length := flag.Duration("length", time.Minute, "how long each of these is measured")
	which := flag.String("clients", strings.Join(clients, ","), "what is measured")
	flag.IntVar(&b.rate, "rate", 20_000, "rows a second of event time: a pane of ten seconds has ten times as many")
	rounds := flag.Int("rounds", 2, "rounds; the least time counts")
	flag.Parse()
	if b.profiles != "" {
		if err := os.MkdirAll(b.profiles, 0o700); err != nil {
			exit(err)
		}
	}
	if *latencies != "" {
		exit(latency(&b, *latencies))
	}
	if *points != "" {
		exit(steady(&b, *points, *delay, *length))
	}
	exit(run(&b, *set, *only, *which, *rounds))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func run(b *bench, set, only, which string, rounds int) error {
	sets := map[string]func() []cell{"short": shortCells, "star": starCells, "json": jsonCells, "full": fullCells}
	cells, ok := sets[set]
	if !ok {
		return fmt.Errorf("set %q: allowed are short, star, json and full", set)
	}
	names := strings.Split(which, ",")
	if err := known(names); err != nil {
		return err
	}
	match, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var results []result
	for _, c := range cells() {
		if !match.MatchString(c.name()) {
			continue
		}
		var r result
		if r, err = b.compare(ctx, c, rounds, names); err != nil {
			break // what there is counts
		}
		results = append(results, r)
		fmt.Fprintf(os.Stderr, "%s:", c.name())
		for _, n := range names {
			fmt.Fprintf(os.Stderr, " %s %.0f", n, perRow(r.took[n].processor, c.Rows))
		}
		fmt.Fprintln(os.Stderr, " ns/row")
	}
	text := fmt.Sprintf("%s; %s/%s, %d cores, broker on the same machine; the least of %d rounds; "+
		"%d rows a second of event time.\n\n%s",
		time.Now().UTC().Format(time.DateOnly), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), rounds, b.rate,
		render(results, names))
	fmt.Print(text)
	if os.Getenv("PLUMBLINE_DOCS") != "" && len(results) > 0 {
		part := "e2e"
		if set == "json" {
			part = set
		}
		return errors.Join(err, section.Replace("bench/results/e2e.md", part, text))
	}
	return err
}
