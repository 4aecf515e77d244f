package calibrate

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/plumbline/plumbline/internal/testsize"
)

// peak is the most bytes of the heap while f runs, over those before.
func peak(f func()) int64 {
	defer debug.SetGCPercent(debug.SetGCPercent(10)) // little that nobody needs is counted
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	before, most := int64(m.HeapAlloc), int64(0)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
				runtime.ReadMemStats(&m)
				most = max(most, int64(m.HeapAlloc)-before)
			}
		}
	}()
	f()
	close(stop)
	<-stopped
	return most
}

// bodies are JSON bodies of about n bytes that cost most for their size.
func bodies(n int) map[string]string {
	list := func(item string) string { return item + strings.Repeat(","+item, n/(len(item)+1)-10) }
	return map[string]string{
		"rows of two":    `{"logits":[` + list("[1,1]") + `]}`,
		"one row":        `{"logits":[[` + list("1") + `]]}`,
		"empty rows":     `{"logits":[` + list("[]") + `]}`,
		"null rows":      `{"logits":[` + list("null") + `]}`,
		"ids":            `{"logits":[[1,1]],"ids":[` + list("1") + `]}`,
		"rows and nulls": `{"logits":[[1,null],` + list("[1,1]") + `]}`,
		"nested":         `{"logits":` + strings.Repeat("[", 9000) + strings.Repeat(" ", max(0, n-9100)),
	}
}

// TestWorkIsBounded: no body takes more memory for its bytes than the budget assumes, and many of them at a time no
// more than it allows; a request that has to wait too long is told to come again.
func TestWorkIsBounded(t *testing.T) {
	testsize.NoRace(t)
	testsize.Slow(t)
	_, url := serve(t)
	post := func(body string) int {
		resp, err := http.Post(url+"/calibrate", typeJSON, strings.NewReader(body))
		if err != nil { // the server hangs up on a body that it does not want
			return http.StatusServiceUnavailable
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode == http.StatusServiceUnavailable && resp.Header.Get("Retry-After") == "" {
			t.Error("503 without Retry-After")
		}
		return resp.StatusCode
	}
	const n = 2 << 20
	for name, body := range bodies(n) {
		most := peak(func() { post(body) })
		t.Logf("%s: %d bytes of memory for each of the body", name, most/n)
		if most > n*(costJSON+4) {
			t.Errorf("%s: %d bytes of memory for each of the body, the budget assumes %d", name, most/n, costJSON)
		}
	}
	largest := bodies(MaxBody)["rows of two"]
	var codes [600]atomic.Int64
	most := peak(func() {
		var g sync.WaitGroup
		for range 64 {
			g.Go(func() { codes[post(largest)].Add(1) })
		}
		g.Wait()
	})
	ok, busy := codes[200].Load(), codes[503].Load()
	if ok+busy != 64 || ok == 0 || busy == 0 {
		t.Errorf("64 of the largest bodies: %d answered, %d told to come again", ok, busy)
	}
	if limit := int64(maxWork+maxBodies) * 5 / 4; most > limit {
		t.Errorf("64 of the largest bodies take %d MB, want at most %d", most>>20, limit>>20)
	}
	t.Logf("64 of the largest bodies: %d answered, %d told to come again, at most %d MB", ok, busy, most>>20)
	if code := post(bodies(1000)["one row"]); code != http.StatusOK {
		t.Errorf("a small body after them: %d", code)
	}
}

// TestSlowBodiesHoldLittle: who announces a large body and sends little of it keeps nobody else out.
func TestSlowBodiesHoldLittle(t *testing.T) {
	_, url := serve(t)
	address := strings.TrimPrefix(url, "http://")
	address, path, _ := strings.Cut(address, "/")
	for range 100 {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		if _, err := fmt.Fprintf(c, "POST /%s/calibrate HTTP/1.1\r\nHost: a\r\nContent-Type: %s\r\n"+
			"Content-Length: %d\r\n\r\n{", path, typeJSON, MaxBody); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(50 * time.Millisecond)
	if resp, body := do(t, http.MethodPost, url+"/calibrate", map[string]string{"Content-Type": typeJSON},
		[]byte(bodies(1 << 20)["rows of two"])); resp.StatusCode != http.StatusOK {
		t.Errorf("%d %.200s", resp.StatusCode, body)
	}
}
