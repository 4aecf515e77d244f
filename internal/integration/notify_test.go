//go:build integration

package integration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/plumbline/plumbline/internal/realdata"
)

// TestAlertmanager: a real drift on a real broker fires and resolves in a real Alertmanager, and a webhook that fails
// at first is told both, signed, once the other answers.
func TestAlertmanager(t *testing.T) {
	t.Parallel()
	am := startAlertmanager(t)
	hook := newWebhook(t)
	file := realdata.File(t, "c10jpeg_resnet_logits.npz")
	s := configure(t, driftCommon+strings.TrimPrefix(driftSetups[0].yaml, "\n")+fmt.Sprintf(`notify:
  external_url: "https://plumbline.example"
  alertmanagers: ["http://%s"]
  labels: ["team=ranking"]
  resend: 1s
  webhooks:
    - url: %q
      secret_env: WEBHOOK_SECRET
`, am, hook.URL))
	// Not by t.Setenv, which takes no test that runs beside others: no other names it.
	if err := os.Setenv("WEBHOOK_SECRET", "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="); err != nil {
		t.Fatal(err)
	}
	run(t, s)
	// Slow enough that what fires is told before it resolves.
	startCommand(t, "produce", "-c", s.file, "--labels", "test_labels", "--model", "net", "--version", "1", "--shuffle",
		"--rate", "1500",
		"--event-rate", fmt.Sprint(driftRate), "--start", start.Format(time.RFC3339), "--label-delay", "0s-10s",
		file+":resnet20", file+":resnet20_gauss_noise_s1")
	var firing bool
	deadline := time.Now().Add(2 * time.Minute)
	for {
		alerts := alertsOf(t, am)
		for _, a := range alerts {
			firing = firing || a.Labels["alertname"] == "ece" && a.Labels["team"] == "ranking" &&
				strings.HasPrefix(a.GeneratorURL, "https://plumbline.example/?at=")
		}
		states := hook.states()
		if firing && strings.Contains(states, "alert.firing alert.resolved") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("after 2 minutes: alertmanager has seen it firing: %v; webhook: %s; alertmanager has %+v", firing,
				states, alerts)
		}
		time.Sleep(200 * time.Millisecond)
	}
	for len(alertsOf(t, am)) > 0 { // resolved ones are not active any more
		if time.Now().After(deadline) {
			t.Fatalf("after 2 minutes alertmanager still has %+v", alertsOf(t, am))
		}
		time.Sleep(200 * time.Millisecond)
	}
	if bad := hook.unsigned(); bad > 0 {
		t.Errorf("%d of the webhook's requests were not signed", bad)
	}
}

// startCommand starts the binary; the test's end ends it.
func startCommand(t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.Command(binary, args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
}

type activeAlert struct {
	Labels       map[string]string
	GeneratorURL string `json:"generatorURL"`
}

func alertsOf(t *testing.T, address string) []activeAlert {
	t.Helper()
	resp, err := http.Get("http://" + address + "/api/v2/alerts?active=true")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var out []activeAlert
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil {
		t.Fatal(err)
	}
	return out
}

// startAlertmanager runs the one that is installed and returns its address.
func startAlertmanager(t *testing.T) string {
	t.Helper()
	var bin string
	for _, name := range []string{"prometheus-alertmanager", "alertmanager"} { // Debian's name, and the project's
		if path, err := exec.LookPath(name); err == nil {
			bin = path
		}
	}
	if bin == "" {
		t.Skip("no Alertmanager on the PATH (Debian: apt-get install prometheus-alertmanager)")
	}
	dir := t.TempDir()
	conf := filepath.Join(dir, "alertmanager.yml")
	if err := os.WriteFile(conf, []byte("route:\n  receiver: nobody\nreceivers:\n  - name: nobody\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	address := freePort(t)
	startServer(t, address, bin, "--config.file="+conf, "--storage.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+address, "--cluster.listen-address=")
	return address
}

// startServer runs a program until the test ends, and returns when it says on its address that it is ready.
func startServer(t *testing.T, address, bin string, args ...string) {
	t.Helper()
	var out bytes.Buffer
	cmd := exec.Command(bin, args...)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for begin := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		resp, err := http.Get("http://" + address + "/-/ready")
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return
			}
		}
		if time.Since(begin) > 30*time.Second {
			t.Fatalf("%s does not answer: %v\n%s", filepath.Base(bin), err, out.Bytes())
		}
	}
}

// webhook is a receiver that refuses the first requests.
type webhook struct {
	*httptest.Server
	mu     sync.Mutex
	seen   []string
	refuse int
	bad    int
}

func newWebhook(t *testing.T) *webhook {
	t.Helper()
	h := &webhook{refuse: 2}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var e struct{ Type string }
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.refuse > 0 {
			h.refuse--
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		if json.Unmarshal(body, &e) != nil || !strings.HasPrefix(r.Header.Get("webhook-signature"), "v1,") ||
			r.Header.Get("webhook-id") == "" {
			h.bad++
		}
		h.seen = append(h.seen, e.Type)
	}))
	t.Cleanup(h.Close)
	return h
}

func (h *webhook) states() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Join(h.seen, " ")
}

func (h *webhook) unsigned() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.bad
}
