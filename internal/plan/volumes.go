package plan

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/operators/model/window"
	"github.com/plumbline/plumbline/operators/validate"
)

const daySeconds = 24 * 3600

// volumes are the bytes that go to each topic in a day.
func (p *Plan) volumes(c *config.Config) {
	l := &p.Load
	rows, pane := l.Rows*daySeconds, c.EventTime.Pane.Seconds()
	header := 700.0 / float64(l.Batch) // of a message: schema and framing
	logits, labels := rows*(predictionBytes+4*float64(l.Classes)+header), rows*(labelBytes+header)
	p.add("logits", logits)
	if l.Inline {
		labels = 0
	} else {
		p.add("labels", labels)
	}
	if !c.Topics.Keyed {
		p.add("both again by id", logits+labels)
	}
	cells := func(keys int, pane float64) float64 {
		reached := 1 + math.Ceil(l.Delay.Seconds()/pane)
		all := daySeconds / pane * float64(p.Partitions*keys) * reached
		return all * expected(cellMessage.at, l.Rows*daySeconds/max(1, all))
	}
	p.add("panes", cells(l.Models, pane)+cells(l.Keys, slicePane(c)))
	minute := pane * math.Ceil(60/pane) // as often as slices are shown
	shown := float64(l.Models)*p.snapshots(c, pane) + float64(l.Keys)*p.snapshots(c, max(minute, slicePane(c)))
	p.add("snapshots", shown*snapshotBytes)
	if c.Calibrated.Enabled {
		p.add("calibrated", rows*(predictionBytes+4*float64(l.Classes)+header))
	}
}

// snapshots are those of a key in a day. Each pane with rows publishes the latest windows, of a slice once a minute.
// Time windows are published once more when they slide, when they are final, and 1, 2, 4 … slides later where labels
// come late.
func (p *Plan) snapshots(c *config.Config, pane float64) (n float64) {
	l := &p.Load
	rate := l.Rows / float64(l.Keys+l.Models)
	for _, w := range c.Windows {
		n += daySeconds / pane * some(rate*pane)
		if w.Kind == window.KindTime {
			slide := cmp.Or(w.Slide, w.Size).Seconds()
			late := math.Ceil(math.Log2(1 + l.Delay.Seconds()/slide))
			n += daySeconds / slide * (2 + late) * some(rate*w.Size.Seconds())
		}
	}
	return n
}

func (p *Plan) add(name string, bytes float64) { p.Topics = append(p.Topics, Topic{name, bytes}) }

// joinWait is half as long again as nearly all labels take, unless the present one is about that.
func joinWait(l *Load, c *config.Config) time.Duration {
	wait := l.Delay + l.Delay/2
	if l.Inline || wait == 0 || wait <= c.Join.Wait && 4*wait >= c.Join.Wait {
		return c.Join.Wait
	}
	return max(time.Minute, wait.Round(time.Minute))
}

// configuration is what to begin with: the keys whose defaults do not fit.
func (p *Plan) configuration(before, c *config.Config) string {
	var b strings.Builder
	l := &p.Load
	fmt.Fprintf(&b, "kafka:\n  partitions: %d\n", p.Partitions)
	if l.Inline {
		b.WriteString("topics:\n  labels: \"\" # the label column travels with the logits\n")
	} else if c.Join.Wait != before.Join.Wait {
		fmt.Fprintf(&b, "join:\n  wait: %s\n", c.Join.Wait)
	}
	if l.Keys > c.Slices.MaxKeys {
		fmt.Fprintf(&b, "slices:\n  max_keys: %d\n", l.Keys)
	}
	// All models may be new at once, and have an old version beside the new one.
	v := &c.Versions
	known, perMinute := bound(v.Max, 2*l.Models), bound(v.NewPerMinute, (l.Models+validate.Burst-1)/validate.Burst)
	if known != v.Max || perMinute != v.NewPerMinute {
		fmt.Fprintf(&b, "versions:\n  max: %d\n  new_per_minute: %d\n", known, perMinute)
	}
	const share = 1.0 / 0.9 // GOMEMLIMIT is nine tenths of the container's limit
	limit := math.Ceil(p.Process/(1<<20)/64) * 64
	fmt.Fprintf(&b, "# %d processes, each with GOMAXPROCS=%d, GOMEMLIMIT=%.0fMiB and a limit of %.0f MiB\n",
		p.Processes, min(p.Provision, coresPerProcess), limit, math.Ceil(limit*share))
	return b.String()
}

// bound raises a bound of versions to what is needed; 0 is none, and so is one beyond the largest allowed.
func bound(has, needed int) int {
	if has == 0 || needed > 1e6 {
		return 0
	}
	return max(has, needed)
}

// bytesText is a number of bytes in three digits.
func bytesText(v float64) string {
	units := []string{"B", "kB", "MB", "GB", "TB", "PB"}
	i := 0
	for ; v >= 999.5 && i < len(units)-1; i++ {
		v /= 1000
	}
	if v < 9.995 && i > 0 {
		return strconv.FormatFloat(v, 'f', 1, 64) + " " + units[i]
	}
	return strconv.FormatFloat(v, 'f', 0, 64) + " " + units[i]
}
