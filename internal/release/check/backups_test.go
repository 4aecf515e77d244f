package check

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// backups takes the state to the S3 store of the compose file and back: with the store away, refused and without its
// bucket first, where the copy must stay and the error name its cause.
func (s *stack) backups(plumbline *exec.Cmd, prometheus string) {
	s.t.Helper()
	before, err := number(prometheus, read)
	if err != nil {
		s.t.Fatal(err)
	}
	const started = `min(process_start_time_seconds{instance="plumbline:8080"})`
	old, err := number(prometheus, started)
	if err != nil {
		s.t.Fatal(err)
	}
	s.stop(plumbline)
	s.must("backup")
	s.refused("connection refused", nil)
	s.start("s3")
	s.until("the S3 server answers", func() error { return connect("s3:7070") })
	s.refused("403", func(args []string) {
		for i, arg := range args {
			if arg == "RCLONE_CONFIG_STORE_SECRET_ACCESS_KEY" {
				args[i+1] = "wrong"
			}
		}
	})
	s.refused("NoSuchBucket", func(args []string) { args[len(args)-1] = "store:nobucket/newest.tar.gz" })
	s.must("upload")

	for _, lost := range []string{"state", "backup"} {
		if err := os.RemoveAll(s.mkdir("volumes", lost)); err != nil {
			s.t.Fatal(err)
		}
	}
	begin := time.Now()
	s.must("download")
	s.t.Logf("S3: %s", strings.TrimSpace(s.must("restore")))
	s.start("plumbline")
	s.until("plumbline is ready with the state from S3", func() error {
		return get("http://plumbline:8080/-/ready", nil)
	})
	s.until("it goes on where it was", func() error {
		// Prometheus must have scraped the new process.
		now, err := number(prometheus, started)
		if err != nil {
			return err
		}
		if now <= old {
			return errors.New("Prometheus has seen the process of before only")
		}
		after, err := number(prometheus, read)
		if err == nil && after <= before {
			err = fmt.Errorf("%v predictions were read, %v before", after, before)
		}
		return err
	})
	s.t.Logf("S3: restored, and %.1f s later beyond the %v predictions of before", time.Since(begin).Seconds(), before)
}

// stop stops a service's process, the child of bwrap, as Docker does, and expects that it succeeds.
func (s *stack) stop(bwrap *exec.Cmd) {
	s.t.Helper()
	parent := bwrap.Process.Pid
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", parent, parent))
	if err != nil {
		s.t.Fatal(err)
	}
	child, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err == nil {
		err = syscall.Kill(child, syscall.SIGTERM)
	}
	if err == nil {
		err = bwrap.Wait()
	}
	if err != nil {
		s.t.Fatalf("the end of %s: %v\n%s", bwrap.Args[0], err, s.logs())
	}
}

// number is the value of a query that has one result.
func number(base, query string) (float64, error) {
	var answer struct {
		Data struct {
			Result []struct{ Value [2]any }
		}
	}
	err := get(base+"/api/v1/query?"+url.Values{"query": {query}}.Encode(), &answer)
	if err != nil {
		return 0, err
	}
	if n := len(answer.Data.Result); n != 1 {
		return 0, fmt.Errorf("%s: %d results, want 1", query, n)
	}
	return strconv.ParseFloat(fmt.Sprint(answer.Data.Result[0].Value[1]), 64)
}

// read is the predictions that all shards have counted since their state began.
const read = `sum(plumbline_events_total{event="predictions",instance="plumbline:8080"})`

// must runs a service that ends.
func (s *stack) must(name string) (out string) {
	s.t.Helper()
	cmd := s.command(name)
	cmd.Stdout, cmd.Stderr = nil, nil
	text, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("%s: %v: %s", name, err, text)
	}
	return string(text)
}

// refused runs an upload that must fail with a cause, and leave the copy as it is.
func (s *stack) refused(cause string, change func(args []string)) {
	s.t.Helper()
	file := filepath.Join(s.mkdir("volumes", "backup"), "plumbline.tar.gz")
	before, err := os.Stat(file)
	if err != nil {
		s.t.Fatal(err)
	}
	cmd := s.command("upload")
	cmd.Stdout, cmd.Stderr = nil, nil
	if change != nil {
		change(cmd.Args)
	}
	text, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(text), cause) {
		s.t.Errorf("upload: %v: %s; want an error with %q", err, text, cause)
	}
	if after, err := os.Stat(file); err != nil || after.Size() != before.Size() || after.ModTime() != before.ModTime() {
		s.t.Errorf("the copy changed: %v", err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	s.t.Logf("S3: refused as it should be: %.150s", strings.Join(lines[max(0, len(lines)-2):], " "))
}
