//go:build integration

package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/plumbline/plumbline/client"
	"github.com/plumbline/plumbline/internal/testsize"
)

// TestClientsWithoutBroker: a broker is killed while clients log 10,000 rows a second, and is away for a minute. What
// has room waits and arrives, each row once; what has none is counted. It takes four minutes: PLUMBLINE_LONG=1.
func TestClientsWithoutBroker(t *testing.T) {
	if !testsize.Long() {
		t.Skip("takes four minutes: PLUMBLINE_LONG=1")
	}
	const rows, per = 700_000, 20
	t.Run("python", func(t *testing.T) {
		dir := filepath.Join(root, "clients", "python")
		python := pythonWith(t, dir+"[kafka]")
		minuteAway(t, rows, func(to string) (got client.Counts) {
			script := filepath.Join(dir, "tests", "broker.py")
			cmd := exec.Command(python, script, to, fmt.Sprint(rows), fmt.Sprint(per))
			cmd.Stderr = t.Output()
			out, err := cmd.Output()
			if err == nil {
				t.Logf("%s", out)
				err = json.Unmarshal(out, &got)
			}
			if err != nil {
				t.Error(err)
			}
			return got
		})
	})
	t.Run("go", func(t *testing.T) {
		minuteAway(t, rows, func(to string) client.Counts {
			l, err := client.New("client", client.Options{To: to, Version: "3"})
			if err != nil {
				t.Error(err)
				return client.Counts{}
			}
			began := time.Now()
			z := make([]float32, 5*per)
			for i := 0; i < rows; i += per {
				time.Sleep(time.Until(began.Add(time.Duration(i) * time.Second / 10_000)))
				ids := make([]string, per)
				for j := range ids {
					ids[j] = fmt.Sprintf("row-%d", i+j)
					z[j*5+(i+j)%5] = float32(i%7) + 1
				}
				l.Log(client.Rows{IDs: ids, Logits: z, Classes: 5})
				l.Label(ids, make([]int32, per))
			}
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			return l.Close(ctx)
		})
	})
}

// minuteAway runs a client beside a broker that is killed after three seconds.
func minuteAway(t *testing.T, rows int64, logs func(to string) client.Counts) {
	a := newAlone(t)
	a.start("serve", "--embedded", a.dir)
	a.await(0, 0)
	done := make(chan client.Counts, 1)
	go func() { done <- logs(a.kafka()) }()
	time.Sleep(3 * time.Second)
	a.end(syscall.SIGKILL)
	time.Sleep(time.Minute)
	a.start("serve", "--embedded", a.dir)
	got := <-done
	if got.Logged != 2*rows || got.Sent+got.Dropped != got.Logged || got.Sent < rows/4 {
		t.Errorf("of %d rows and their labels: %+v", rows, got)
	}
	var s struct {
		Process struct {
			Counts struct{ Predictions, Labels, Joined, Corrections int64 }
		}
	}
	c := &s.Process.Counts
	for range 1200 {
		r, err := http.Get("http://" + a.listen + "/api/v1/status")
		if err == nil {
			err = json.NewDecoder(r.Body).Decode(&s)
			_ = r.Body.Close()
		}
		if err == nil && c.Predictions+c.Labels-c.Corrections >= got.Sent {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Logf("client %+v; process %+v", got, *c)
	if c.Predictions+c.Labels-c.Corrections != got.Sent || got.Dropped == 0 && c.Joined != rows {
		t.Errorf("client %+v; process %+v", got, *c)
	}
}
