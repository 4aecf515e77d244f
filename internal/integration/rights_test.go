//go:build integration

package integration

import (
	"crypto/pbkdf2"
	"crypto/sha512"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/plumbline/plumbline/internal/eventually"
	"github.com/plumbline/plumbline/internal/kafkatest"
)

// TestRights: a user gets the rights that doctor says are missing, by the commands that it prints, and then they are
// all that run needs. When the right to read the predictions is withdrawn, the process says so and neither that it has
// read all nor that labels are wrong; when it is given back, nothing is lost, late or tried in vain. Without the right
// on its groups it is not ready, either.
func TestRights(t *testing.T) {
	t.Parallel()
	door := secured(t)
	const group = "app-" // of it are topics, too: not those that it is given by name
	s := configureEdited(t, oneDay+"models: [{name: good, classes: 10}]\n", "keyed: true", "keyed: false",
		"group: ", "group: "+group)
	admin := &kafka.Client{Addr: kafka.TCP(brokers...)}
	door.user, door.password = s.prefix, "password"
	addUser(t, admin, door)
	app := door.through(t, s)

	grants := missingRights(t, app)
	for _, topic := range []string{s.topic("logits"), s.topic("panes"), group + s.prefix + "."} {
		if !strings.Contains(strings.Join(grants, " ")+" ", " --topic "+topic+" ") {
			t.Errorf("doctor gives no right on %s: %q", topic, grants)
		}
	}
	if out, err := exec.Command(binary, "run", "-c", app.file).CombinedOutput(); err == nil ||
		!strings.Contains(string(out), "plumbline doctor says which rights are missing") {
		t.Errorf("run without rights: %v, %s", err, out)
	}
	give(t, admin, grants)
	eventually.Get(t, "doctor misses nothing after what it says", func() ([]string, bool) {
		missing := missingRights(t, app) // the broker takes a moment
		return missing, missing == nil
	})

	p := run(t, app)
	good := goodStream(t, s)
	half := len(good) / 2
	kafkatest.Write(t, brokers, good[:half]...)
	p.wait(time.Minute, "read", func() bool {
		st, err := p.status()
		return err == nil && st.Drained && st.Counts.Labels > 0
	})
	withdraw(t, admin, door.user, kafka.ResourceTypeTopic, s.topic("logits"))
	type lags map[string]map[string]struct{ Offsets int64 }
	var now struct {
		Process struct {
			Drained  bool
			Lag      lags
			Failing  []struct{ Task, Cause string }
			Troubles []struct{ Title string }
		}
	}
	kafkatest.Write(t, brokers, good[half:]...)
	p.wait(time.Minute, "name what it may not read", func() bool {
		err := p.get("/-/ready", nil)
		return err != nil && strings.Contains(err.Error(), "topic "+s.topic("logits")+": ")
	})
	p.mustGet("/api/v1/status", &now)
	if f := now.Process.Failing; now.Process.Drained || len(f) != 1 || f[0].Task != "topics" ||
		!strings.Contains(f[0].Cause, "plumbline doctor names the rights") || now.Process.Troubles != nil {
		t.Errorf("status: %+v", now.Process)
	}
	if lag, known := now.Process.Lag["repartition-logits-0"]["logits"]; known {
		t.Errorf("how far reading is behind is said to be known: %+v", lag)
	}
	if again := missingRights(t, app); len(again) != 1 || !strings.Contains(again[0], "--operation Read --topic "+
		s.topic("logits")) {
		t.Errorf("doctor says %q", again)
	}

	give(t, admin, grants)
	st := p.drain(goodRows, goodRows)
	ready := func() bool {
		resp, err := http.Get("http://" + s.listen + "/-/ready")
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	}
	p.wait(time.Minute, "be ready", ready)
	withdraw(t, admin, door.user, kafka.ResourceTypeGroup, group+s.prefix+"-")
	p.wait(time.Minute, "name the groups that it may not be in any more", func() bool {
		err := p.get("/-/ready", nil)
		return err != nil && strings.Contains(err.Error(), "not in its group any more since ")
	})
	give(t, admin, grants)
	p.wait(time.Minute, "be in its groups again", ready)
	if st.Counts.Late != 0 || st.Counts.Joined != goodRows {
		t.Errorf("%+v", st.Counts)
	}
	text, err := os.ReadFile(p.log)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, "task failed") && !strings.Contains(line, "task=topics") {
			t.Errorf("a task has ended: %s", line)
		}
	}
	p.stop()
}

// addUser makes a user who may do nothing.
func addUser(t *testing.T, admin *kafka.Client, c connection) {
	t.Helper()
	const rounds = 4096
	salt := []byte("of " + c.user)
	salted, err := pbkdf2.Key(sha512.New, c.password, salt, rounds, sha512.Size)
	if err != nil {
		t.Fatal(err)
	}
	res, err := admin.AlterUserScramCredentials(t.Context(), &kafka.AlterUserScramCredentialsRequest{
		Upsertions: []kafka.UserScramCredentialsUpsertion{{Name: c.user, Mechanism: kafka.ScramMechanismSha512,
			Iterations: rounds, Salt: salt, SaltedPassword: salted}}})
	if err == nil {
		err = res.Results[0].Error
	}
	if err != nil {
		t.Fatal(err)
	}
}

// missingRights are the commands that doctor says give them. It has its doubts about nothing else but what a user
// without DescribeConfigs may not see.
func missingRights(t *testing.T, s settings) (commands []string) {
	t.Helper()
	out, _ := exec.Command(binary, "doctor", "-c", s.file, "--json").Output()
	var report struct {
		Findings []struct{ Check, State, Do string }
	}
	if err := json.Unmarshal(out, &report); err != nil {
		t.Fatalf("doctor: %v\n%s", err, out)
	}
	said := false
	for _, f := range report.Findings {
		if f.Check != "permissions" {
			continue
		}
		said = true
		if command, ok := strings.CutPrefix(f.Do, "kafka-acls.sh "); ok {
			command, _, _ = strings.Cut(command, ";")
			commands = append(commands, command)
		} else if f.State != "ok" {
			t.Errorf("doctor: %+v", f)
		}
	}
	if !said {
		t.Errorf("doctor says nothing about rights:\n%s", out)
	}
	return commands
}

// give does what the commands say, without kafka-acls.sh.
func give(t *testing.T, admin *kafka.Client, commands []string) {
	t.Helper()
	req := &kafka.CreateACLsRequest{}
	for _, command := range commands {
		args := map[string][]string{}
		words := strings.Fields(command)
		for i, word := range words[:len(words)-1] {
			args[word] = append(args[word], words[i+1])
		}
		e := kafka.ACLEntry{Principal: args["--allow-principal"][0], Host: "*",
			PermissionType: kafka.ACLPermissionTypeAllow, ResourcePatternType: kafka.PatternTypeLiteral}
		if args["--resource-pattern-type"] != nil {
			e.ResourcePatternType = kafka.PatternTypePrefixed
		}
		for _, operation := range args["--operation"] {
			if err := e.Operation.UnmarshalText([]byte(operation)); err != nil {
				t.Fatal(command, err)
			}
			for option, kind := range map[string]kafka.ResourceType{"--topic": kafka.ResourceTypeTopic,
				"--group": kafka.ResourceTypeGroup} {
				for _, e.ResourceName = range args[option] {
					e.ResourceType = kind
					req.ACLs = append(req.ACLs, e)
				}
			}
		}
	}
	res, err := admin.CreateACLs(t.Context(), req)
	if err == nil {
		err = errors.Join(res.Errors...)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// withdraw takes all rights on a topic, or on groups that begin with a name, from a user.
func withdraw(t *testing.T, admin *kafka.Client, user string, kind kafka.ResourceType, name string) {
	t.Helper()
	pattern := kafka.PatternTypeLiteral
	if kind == kafka.ResourceTypeGroup {
		pattern = kafka.PatternTypePrefixed
	}
	res, err := admin.DeleteACLs(t.Context(), &kafka.DeleteACLsRequest{Filters: []kafka.DeleteACLsFilter{{
		ResourceTypeFilter: kind, ResourceNameFilter: name,
		ResourcePatternTypeFilter: pattern, PrincipalFilter: "User:" + user,
		Operation: kafka.ACLOperationTypeAny, PermissionType: kafka.ACLPermissionTypeAny}}})
	if err == nil {
		err = res.Results[0].Error
	}
	if err != nil || len(res.Results[0].MatchingACLs) == 0 {
		t.Fatalf("%v: %+v", err, res)
	}
}
