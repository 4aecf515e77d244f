package plan

import (
	"fmt"
	"io"
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
	fmt.Fprintf(&b, "cores    %.1f busy: rows %.1f, panes of keys %.1f", p.Cores, p.Parts.Rows, p.Parts.Keys)
	if p.Parts.Disk > 0 {
		fmt.Fprintf(&b, ", rows that wait on disk %.1f", p.Parts.Disk)
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
