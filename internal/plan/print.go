package plan

import (
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Print writes the plan as text.
func (p *Plan) Print(w io.Writer) error {
	var b strings.Builder
	l := &p.Load
	labels := fmt.Sprintf("labels within %v", l.Delay)
	if l.Inline {
		labels = "labels inline"
	}
	fmt.Fprintf(&b, "%.0f rows a second, %d classes, %d model versions and %d slices, %s, %d rows a message\n\n",
		l.Rows, l.Classes, l.Models, l.Keys, labels, l.Batch)
	fmt.Fprintf(&b, "cores    %s busy: asking for rows %s", coresText(p.Cores), coresText(p.Parts.Inputs))
	for _, x := range []struct {
		name  string
		cores float64
	}{{"rows", p.Parts.Rows}, {"panes of keys", p.Parts.Keys},
		{"sampled rows", p.Parts.Sampled}, {"checkpoints", p.Parts.Checkpoints},
		{"rows that wait on disk", p.Parts.Disk}} {
		if x.cores > 0 {
			fmt.Fprintf(&b, ", %s %s", x.name, coresText(x.cores))
		}
	}
	fmt.Fprintf(&b, "\n         provide %d, to catch up with an outage as fast as rows come\n", p.Provision)
	fmt.Fprintf(&b, "memory   %s resident, %s in each of %d processes; in use %s by shards, %s by model tasks\n",
		bytesText(p.Memory), bytesText(p.Process), p.Processes, bytesText(p.Shards), bytesText(p.Tasks))
	fmt.Fprintf(&b, "disk     %s for state; %.0f rows wait for their label\n", bytesText(p.Disk), p.Waiting)
	b.WriteString("topics   a day, before replication and compression:")
	for i, t := range p.Topics {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, " %s %s", t.Name, bytesText(t.Day))
	}
	fmt.Fprintf(&b, "\n\nConfiguration to begin with, beside brokers and directories:\n\n%s\n", p.Config)
	b.WriteString("An estimate: processor time within 25 % on the machine that it was measured on " +
		"(bench/results/plan.md). Measure yours.\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// coresText is a number of cores in two digits, so that a small one is not 0.
func coresText(v float64) string {
	switch {
	case v >= 10:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v < .001:
		return "below 0.001"
	}
	return strconv.FormatFloat(v, 'g', 2, 64)
}
