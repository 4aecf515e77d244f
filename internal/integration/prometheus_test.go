//go:build integration

package integration

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/internal/realdata"
)

// TestPrometheus: a real Prometheus scrapes plumbline, judges the rules of deploy/prometheus, and tells a real
// Alertmanager of a drift that begins and is mended; none of the other rules is disturbed by it.
func TestPrometheus(t *testing.T) {
	t.Parallel()
	am := startAlertmanager(t)
	file := realdata.File(t, "c10jpeg_resnet_logits.npz")
	s := configure(t, driftCommon+strings.TrimPrefix(driftSetups[0].yaml, "\n"))
	startPrometheus(t, s.listen, am)
	run(t, s)
	startCommand(t, "produce", "-c", s.file, "--labels", "test_labels", "--model", "net", "--version", "1", "--shuffle",
		"--rate", "800",
		"--event-rate", fmt.Sprint(driftRate), "--start", start.Format(time.RFC3339), "--label-delay", "0s-10s",
		file+":resnet20", file+":resnet20_gauss_noise_s1")
	deadline := time.Now().Add(3 * time.Minute)
	var alarms []activeAlert
	wait := func(what string, done func() bool) {
		t.Helper()
		for !done() {
			if time.Now().After(deadline) {
				t.Fatalf("after 3 minutes not seen: %s; Alertmanager has %+v", what, alarms)
			}
			time.Sleep(200 * time.Millisecond)
			alarms = alertsOf(t, am)
		}
	}
	wait("PlumblineAlarm firing", func() bool { return named(alarms, "PlumblineAlarm") })
	for _, a := range alarms {
		if a.Labels["alertname"] == "PlumblineAlarm" && (a.Labels["model"] != "net" || a.Labels["version"] != "1" ||
			a.Labels["severity"] == "") {
			t.Errorf("labels %v: want those of the model and a severity", a.Labels)
		}
		if a.Labels["alertname"] != "PlumblineAlarm" && a.Labels["severity"] == "critical" {
			t.Errorf("%v fires too", a.Labels)
		}
	}
	wait("PlumblineAlarm resolved", func() bool { return !named(alarms, "PlumblineAlarm") })
}

func named(alerts []activeAlert, name string) bool {
	for _, a := range alerts {
		if a.Labels["alertname"] == name {
			return true
		}
	}
	return false
}

// startPrometheus runs the one that is installed, with the shipped rules, on one target and one Alertmanager.
func startPrometheus(t *testing.T, target, alertmanager string) {
	t.Helper()
	bin, err := exec.LookPath("prometheus")
	if err != nil {
		t.Skip("no Prometheus on the PATH (Debian: apt-get install prometheus)")
	}
	rules, err := filepath.Abs("../../deploy/prometheus/rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	conf := filepath.Join(dir, "prometheus.yml")
	text := fmt.Sprintf(`global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [%q]
alerting:
  alertmanagers:
    - static_configs: [{targets: [%q]}]
scrape_configs:
  - job_name: plumbline
    static_configs: [{targets: [%q]}]
`, rules, alertmanager, target)
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	address := freePort(t)
	startServer(t, address, bin, "--config.file="+conf, "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+address)
}
