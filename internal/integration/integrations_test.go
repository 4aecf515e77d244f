//go:build integration

package integration

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestIntegrations follows pages of docs/integrations: it installs what a page names, writes its program, runs its
// commands at ports of the test's own, and looks whether the prediction and its label met. PLUMBLINE_INTEGRATIONS=all,
// or names with commas, runs those that install much.
func TestIntegrations(t *testing.T) {
	chosen := os.Getenv("PLUMBLINE_INTEGRATIONS")
	for _, name := range []string{"fastapi", "mlflow", "bentoml", "ray-serve", "kserve"} {
		t.Run(name, func(t *testing.T) {
			if name != "fastapi" && chosen != "all" && !strings.Contains(","+chosen+",", ","+name+",") {
				t.Skip("installs much: PLUMBLINE_INTEGRATIONS=" + name)
			}
			followPage(t, name)
		})
	}
}

// block is a code block of a page.
func block(t *testing.T, page, language string, n int) string {
	t.Helper()
	parts := strings.Split(page, "```"+language+"\n")
	if len(parts) <= n {
		t.Fatalf("no block %d of %s", n, language)
	}
	text, _, _ := strings.Cut(parts[n], "```")
	return text
}

func followPage(t *testing.T, name string) {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "docs", "integrations", name+".md"))
	if err != nil {
		t.Fatal(err)
	}
	a := newAlone(t)
	port := freePort(t)
	if !strings.Contains(string(text), "--port 8000") { // a server that has one port
		port = "localhost:8000"
	}
	page := strings.NewReplacer("localhost:8080", a.listen, "localhost:8000", port, "--port 8000",
		"--port "+port[strings.LastIndex(port, ":")+1:]).Replace(string(text))
	install := strings.ReplaceAll(block(t, page, "sh", 1), "./clients/python", root+"/clients/python")
	var packages []string
	for _, m := range regexp.MustCompile(`"([^"]+)"|(\S+)`).FindAllStringSubmatch(install, -1) {
		packages = append(packages, m[1]+m[2])
	}
	python := os.Getenv("PLUMBLINE_INTEGRATIONS_PYTHON") // where they are installed already
	if python == "" {
		python = pythonWith(t, packages[2:]...)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "app.py"), []byte(block(t, page, "python", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	a.start("serve", "--embedded", a.dir)
	a.await(0, 0)
	var script strings.Builder
	fmt.Fprintf(&script, "export PATH=%s:$PATH\n", filepath.Dir(python))
	for _, line := range strings.Split(strings.TrimSpace(block(t, page, "sh", 2)), "\n") {
		if strings.HasPrefix(line, "curl ") { // the server is starting
			line = strings.Replace(line, "curl -s", "curl -sS --fail --retry 60 --retry-delay 1 --retry-all-errors", 1)
		}
		fmt.Fprintf(&script, "%s\n", line)
	}
	sh := exec.CommandContext(t.Context(), "bash", "-ec", script.String()+"echo; echo answered; wait\n")
	sh.Dir = dir
	sh.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	sh.Stdout, sh.Stderr = log, log
	if err := sh.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-sh.Process.Pid, syscall.SIGTERM)
		time.Sleep(time.Second)
		_ = syscall.Kill(-sh.Process.Pid, syscall.SIGKILL)
		_ = sh.Wait()
		out, _ := os.ReadFile(log.Name())
		t.Logf("%s", tail(out))
	})
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		if out, _ := os.ReadFile(log.Name()); strings.Contains(string(out), "answered") {
			break
		}
	}
	a.await(1, 1)
}
