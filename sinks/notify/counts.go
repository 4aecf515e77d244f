package notify

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
)

// Receiver is one that is notified of alerts.
type Receiver struct {
	To   string // alertmanager or webhook
	Name string // its host; with #2 and so on where others of the host were configured before it
}

// Outcomes are what came of requests to an Alertmanager or of deliveries to a webhook; all only grow.
type Outcomes struct {
	OK      atomic.Int64
	Failed  atomic.Int64 // requests that are tried again
	GivenUp atomic.Int64 // deliveries that are not
}

// Counts say how notifications went. The zero value is ready; the notifiers of all partitions share one.
type Counts struct {
	Evicted, Unreadable atomic.Int64 // alerts for want of room; records

	mu        sync.Mutex
	receivers map[Receiver]*Outcomes
}

// Of are the outcomes of a receiver.
func (c *Counts) Of(r Receiver) *Outcomes {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := c.receivers[r]
	if o == nil {
		if c.receivers == nil {
			c.receivers = map[Receiver]*Outcomes{}
		}
		o = &Outcomes{}
		c.receivers[r] = o
	}
	return o
}

// Receivers are those that have outcomes, sorted.
func (c *Counts) Receivers() []Receiver {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]Receiver, 0, len(c.receivers))
	for r := range c.receivers {
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b Receiver) int {
		return cmp.Or(cmp.Compare(a.To, b.To),
			cmp.Compare(a.Name, b.Name))
	})
	return out
}

// outcomes are those of the receivers at the addresses, in their order: no path or query, which may be secret, is in
// their names.
func (c *Counts) outcomes(to string, addresses []string) []*Outcomes {
	out, seen := make([]*Outcomes, len(addresses)), map[string]int{}
	for i, address := range addresses {
		name := host(address)
		if seen[name]++; seen[name] > 1 {
			name = fmt.Sprintf("%s#%d", name, seen[name])
		}
		out[i] = c.Of(Receiver{to, name})
	}
	return out
}
