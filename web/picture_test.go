//go:build integration

package web

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// tab is a page in a browser that is driven over a pipe: unlike --dump-dom, real time passes in it, and streams stay
// open.
type tab struct {
	t       *testing.T
	out     *os.File
	in      *bufio.Reader
	session string
	id      int
}

func newTab(ctx context.Context, t *testing.T, width, height int) *tab {
	t.Helper()
	bin, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("no chromium on PATH")
	}
	theirIn, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	in, theirOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	profile, err := os.MkdirTemp("", "plumbline-tab-") // its processes may write to it for a moment after its end
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, bin, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
		"--hide-scrollbars", "--user-data-dir="+profile,
		"--blink-settings=preferredColorScheme=1", "--remote-debugging-pipe", "about:blank")
	cmd.ExtraFiles = []*os.File{theirIn, theirOut} // descriptors 3 and 4, as the browser wants them
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = theirIn.Close(), theirOut.Close() // so that a browser that ends is the end of what is read
	if deadline, ok := ctx.Deadline(); ok {
		_ = in.SetReadDeadline(deadline)
	}
	b := &tab{t: t, out: out, in: bufio.NewReader(in)}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = os.RemoveAll(profile)
	})
	target := b.call("Target.createTarget", map[string]any{"url": "about:blank"})
	b.session = b.call("Target.attachToTarget", map[string]any{"targetId": target["targetId"],
		"flatten": true})["sessionId"].(string)
	b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height,
		"deviceScaleFactor": 1, "mobile": false})
	return b
}

// errNavigated is what an expression gets whose page went away while it was evaluated: a link was followed.
var errNavigated = errors.New("the page was left")

// call sends a command of the DevTools protocol, and returns its result.
func (b *tab) call(method string, params map[string]any) map[string]any {
	b.t.Helper()
	result, err := b.try(method, params)
	if err != nil {
		b.t.Fatalf("%s: %v", method, err)
	}
	return result
}

// try is call that returns what the browser refuses; events are passed over.
func (b *tab) try(method string, params map[string]any) (map[string]any, error) {
	b.id++
	msg := map[string]any{"id": b.id, "method": method, "params": params}
	if b.session != "" {
		msg["sessionId"] = b.session
	}
	text, err := json.Marshal(msg)
	if err == nil {
		_, err = b.out.Write(append(text, 0))
	}
	for err == nil {
		var line []byte
		if line, err = b.in.ReadBytes(0); err != nil {
			break
		}
		var reply struct {
			ID     int
			Result map[string]any
			Error  *struct{ Message string }
		}
		if err = json.Unmarshal(line[:len(line)-1], &reply); err != nil || reply.ID != b.id {
			continue
		}
		switch {
		case reply.Error == nil:
			return reply.Result, nil
		case reply.Error.Message == "Inspected target navigated or closed":
			return nil, errNavigated
		}
		return nil, errors.New(reply.Error.Message)
	}
	return nil, err
}

// press presses and lets go of a key.
func (b *tab) press(key, text string) {
	for _, kind := range []string{"keyDown", "keyUp"} {
		b.call("Input.dispatchKeyEvent", map[string]any{"type": kind, "key": key, "code": key, "text": text,
			"windowsVirtualKeyCode": map[string]int{"Enter": 13, "Tab": 9}[key]})
	}
}

// await polls an expression until it is true, in the next page if one is on its way.
func (b *tab) await(ctx context.Context, expression string) {
	b.t.Helper()
	for {
		reply, err := b.try("Runtime.evaluate", map[string]any{"expression": expression})
		if err != nil && !errors.Is(err, errNavigated) {
			b.t.Fatalf("Runtime.evaluate: %v", err)
		}
		if v, _ := reply["result"].(map[string]any); v["value"] == true {
			return
		}
		select {
		case <-ctx.Done():
			b.t.Fatalf("never true: %s", expression)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// TestPictureOfDemo runs the demo, looks at its page while it runs, and holds the page against the story; it writes the
// picture of README.md (make picture).
func TestPictureOfDemo(t *testing.T) {
	file := os.Getenv("PLUMBLINE_PICTURE")
	if file == "" {
		t.Skip("PLUMBLINE_PICTURE names no file: no picture wanted")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Minute) // a busy machine builds for minutes
	defer cancel()
	bin := filepath.Join(t.TempDir(), "plumbline")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", bin, "../cmd/plumbline").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	page := newTab(ctx, t, 1400, 1130)
	demo := exec.CommandContext(ctx, bin, "demo", "--listen", "127.0.0.1:0")
	story, err := demo.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := demo.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(story)
	for lines.Scan() {
		t.Log(lines.Text())
		switch text := lines.Text(); {
		case strings.Contains(text, "page at "):
			_, url, _ := strings.Cut(text, "page at ")
			url, _, _ = strings.Cut(url, ": open")
			page.call("Page.navigate", map[string]any{"url": url})
		case strings.Contains(text, "ALARM firing"):
			page.await(ctx, `document.getElementById("verdict").textContent.includes("is firing")`)
		case strings.Contains(text, "HEAD ready"):
			page.await(ctx, `document.getElementById("asof").textContent.match(/[0-9:]{8}/)[0] >= "00:15:40"`)
			page.await(ctx, `document.getElementById("verdict").dataset.state === "answered" &&
				document.querySelector("[name=slice]").value === "" &&
				document.getElementById("headlist").textContent.includes("ready to be served")`)
			data, err := base64.StdEncoding.DecodeString(page.call("Page.captureScreenshot", nil)["data"].(string))
			if err == nil {
				err = os.WriteFile(file, data, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := demo.Wait(); err != nil {
		t.Errorf("the demo: %v", err)
	}
	// the demo is over, and the page says that nobody answers
	page.await(ctx, `document.getElementById("conn").dataset.state === "lost"`)
}
