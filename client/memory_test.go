package client

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
)

// nobody is a broker that does not answer.
type nobody struct{}

func (nobody) RoundTrip(ctx context.Context, _ net.Addr, _ kafka.Request) (kafka.Response, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// heap is what is in use.
func heap() int {
	runtime.GC()
	runtime.GC() // what the first has found for finalizers and pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// TestMaxBytesIsWhatIsKept: calls of each form keep as much memory as they are counted for, whatever the caller cut
// their texts from.
func TestMaxBytesIsWhatIsKept(t *testing.T) {
	ids := func(at, n int) (out []string) {
		for i := range n {
			out = append(out, fmt.Sprint("prediction-", at, "-", i))
		}
		return out
	}
	cohorts := func(at, n int) map[string][]string {
		return map[string][]string{"region": ids(at, n), "tenant": ids(at, 1), "device": ids(at, n)}
	}
	for name, rows := range map[string]func(at int) Rows{
		"a row": func(at int) Rows { return Rows{IDs: ids(at, 1), Logits: make([]float32, 3), Classes: 3} },
		"a row with slices": func(at int) Rows {
			return Rows{IDs: ids(at, 1), Logits: make([]float32, 3), Classes: 3, Slices: cohorts(at, 1)}
		},
		"a batch with all": func(at int) Rows {
			return Rows{IDs: ids(at, 64), Logits: make([]float32, 640), Classes: 10, Slices: cohorts(at, 64),
				Features: make([]float32, 640), Served: make([]float32, 64), Weight: make([]float32, 64),
				Labels: make([]int32, 64), Times: make([]time.Time, 64)}
		},
		"labels": func(at int) Rows { return Rows{IDs: ids(at, 3), Labels: make([]int32, 3)} },
		"ids of requests": func(at int) Rows {
			request := fmt.Sprint(at, "-id", strings.Repeat(" and the rest of it", 100))
			return Rows{IDs: []string{request[:9]}, Logits: make([]float32, 2), Classes: 2}
		},
	} {
		t.Run(name, func(t *testing.T) {
			const most = 16 << 20
			l := logTo(t, "kafka://nobody:9092", Options{MaxBytes: most, Linger: time.Hour, Transport: nobody{}})
			before := heap()
			for at := 0; l.Stats().Dropped == 0; at++ {
				if r := rows(at); r.Classes == 0 {
					l.Label(r.IDs, r.Labels)
				} else {
					l.Log(r)
				}
			}
			kept, counted := heap()-before, l.Stats().WaitingBytes
			if counted > most || float64(kept) > 1.2*float64(counted) || float64(kept) < 0.8*float64(counted) {
				t.Errorf("%d bytes are kept, %d counted of %d", kept, counted, most)
			}
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			l.Close(ended)
		})
	}
}
