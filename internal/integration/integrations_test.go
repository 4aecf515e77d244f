//go:build integration

package integration

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/plumbline/plumbline/internal/kafkatest"
	"github.com/plumbline/plumbline/internal/pgtest"
	"github.com/plumbline/plumbline/pipeline/record"
)

// guide is a page of docs/integrations, and what following it must end in.
type guide struct {
	name string
	rows int64 // predictions, each of which gets its label
	ci   bool  // it is followed by default: it installs little
	// mean confidence; 0: whatever it is
	confidence float64
	// what the page takes for granted; nil: nothing
	given func(t *testing.T, f *follower)
	// topics beside those of plumbline.yaml
	topics []string
	// path and body of a last prediction, after which the server is told to end at once; "": none
	lastPath, lastBody string
}

var guides = []guide{
	{name: "fastapi", rows: 1, ci: true, lastPath: "/predict", lastBody: "[[5.1,3.5,1.4,0.2]]"},
	{name: "mlflow", rows: 1},
	{name: "bentoml", rows: 1},
	{name: "ray-serve", rows: 1},
	{name: "kserve", rows: 1},
	{name: "debezium", rows: 1000, ci: true, given: givenDatabase},
	{name: "openai", rows: 100, ci: true, confidence: 8. / 9, given: givenLanguageModel},
	{name: "seldon", rows: 150, topics: []string{"serving.requests"}},
	{name: "spark", rows: 1000},
	{name: "flink", rows: 1000},
	{name: "triton", rows: 150, given: givenTriton},
	{name: "pytorch", rows: 20},
}

// TestIntegrations follows pages of docs/integrations: it installs what a page names, writes its files, runs its
// commands at ports and with topics of the test's own, and looks whether every prediction met its label.
// PLUMBLINE_INTEGRATIONS=all, or names with commas, runs those that install much.
func TestIntegrations(t *testing.T) {
	t.Parallel() // with other tests; pages come one after the other, since servers have ports of their own
	chosen := os.Getenv("PLUMBLINE_INTEGRATIONS")
	for _, g := range guides {
		t.Run(g.name, func(t *testing.T) {
			named := strings.Contains(","+chosen+",", ","+g.name+",")
			if chosen != "all" && !named && (!g.ci || chosen != "") {
				t.Skip("PLUMBLINE_INTEGRATIONS=" + g.name + " follows it")
			}
			followGuide(t, g)
		})
	}
}

// follower is a page that is being followed.
type follower struct {
	page string
	dir  string   // where its files are and its commands run
	bin  string   // programs that the page takes for granted
	env  []string // NAME=value
	// address of the model server, and process group of the commands
	server string
	group  int
}

// replace puts what the test has where the page has an example.
func (f *follower) replace(oldnew ...string) { f.page = strings.NewReplacer(oldnew...).Replace(f.page) }

// namedFile is a code block whose first line is a comment with the name of a file.
var namedFile = regexp.MustCompile("(?s)```\\w+\n(?:#|--) ([\\w.-]+\\.\\w+)\n(.*?)```")

// shell is a code block of commands.
var shell = regexp.MustCompile("(?s)```sh\n(.*?)```")

func followGuide(t *testing.T, g guide) {
	text, err := os.ReadFile(filepath.Join(root, "docs", "integrations", g.name+".md"))
	if err != nil {
		t.Fatal(err)
	}
	f := &follower{page: string(text), dir: t.TempDir(), bin: t.TempDir()}
	if g.given != nil {
		g.given(t, f)
	}
	if strings.Count(f.page, "8000") > strings.Count(f.page, "localhost:8000") { // else the server has one port
		port := freePort(t)
		f.server = port
		f.replace("localhost:8000", port, "8000", port[strings.LastIndex(port, ":")+1:])
	}
	f.replace("./clients/python", root+"/clients/python", "localhost:8083", freePort(t))
	await := f.serve(t, g)
	for _, m := range namedFile.FindAllStringSubmatch(f.page, -1) {
		if err := os.WriteFile(filepath.Join(f.dir, m[1]), []byte(m[2]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f.run(t)
	await()
}

// serve starts what the page reports to, by its plumbline.yaml where it has one, on the broker of all tests with topics
// of its own. The function waits for so many predictions with their labels.
func (f *follower) serve(t *testing.T, g guide) func() {
	config := "http: {ingest: true}"
	for _, m := range namedFile.FindAllStringSubmatch(f.page, -1) {
		if m[1] == "plumbline.yaml" {
			config = m[2]
		}
	}
	if g.confidence == 0 { // a connector that is slow to start is no end of the stream: labels after that would be late
		config += "\nevent_time: {idle_timeout: 20s}\n"
	}
	s := setUp(t, config)
	var page struct{ Inputs []struct{ Topic string } }
	if err := yaml.Unmarshal([]byte(config), &page); err != nil {
		t.Fatal(err)
	}
	topics := slices.Clone(g.topics)
	for _, in := range page.Inputs {
		topics = append(topics, in.Topic)
	}
	for _, name := range topics {
		f.replace(name, s.topic(name))
		kafkatest.CreateTopics(t, brokers, 2, s.topic(name))
	}
	f.replace("topic.prefix=", "topic.prefix="+s.topic(""), "localhost:8080", s.listen, "localhost:9092",
		strings.Join(brokers, ","))
	runOK(t, "topics", "create", "-c", s.file)
	p := run(t, s)
	return func() {
		var c counts
		p.wait(time.Minute, fmt.Sprintf("join %d rows", g.rows), func() bool {
			st, err := p.status()
			c = st.Counts
			return err == nil && c.Joined >= g.rows
		})
		if c.Predictions != g.rows || c.Joined != g.rows || c.Labelled != g.rows || c.Late+c.Duplicates != 0 ||
			sum(c.Rejected)+sum(c.DeadLetters) != 0 {
			t.Errorf("%+v, want %d predictions with labels", c, g.rows)
		}
		if g.lastPath != "" {
			f.last(t, g)
			p.wait(time.Minute, "get the prediction before the server's end", func() bool {
				st, err := p.status()
				return err == nil && st.Counts.Predictions == g.rows+1
			})
		}
		if g.confidence != 0 {
			p.wait(2*time.Minute, fmt.Sprintf("have a mean confidence of %v", g.confidence), func() bool {
				return slices.ContainsFunc(latest(t, s), func(snap record.Snapshot) bool {
					return snap.Slice == "" && snap.Window.Name == "all" && snap.Labelled == g.rows &&
						math.Abs(*snap.Raw.MeanConfidence-g.confidence) < 1e-5 // 10⁻⁶ is for "unsure"
				})
			})
		}
	}
}

// run runs the page's commands; servers that they started end with the test.
func (f *follower) run(t *testing.T) {
	blocks := shell.FindAllStringSubmatch(f.page, -1)
	script := ""
	for i, b := range blocks {
		for _, line := range strings.Split(strings.TrimSpace(b[1]), "\n") {
			if i == 0 && strings.HasPrefix(line, "pip install ") {
				f.bin = filepath.Dir(f.python(t, line)) + ":" + f.bin
				continue
			}
			// The server is starting.
			script += strings.Replace(line, "curl -s ", "curl -s --fail --retry 90 --retry-delay 1 --retry-all-errors ",
				1) + "\n"
		}
	}
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	sh := exec.Command("timeout", "-k", "10", "300", "bash", "-ec", script)
	sh.Dir, sh.Stdout, sh.Stderr = f.dir, log, log
	sh.Env = append(append(os.Environ(), f.env...), "PATH="+f.bin+":"+os.Getenv("PATH"))
	sh.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := sh.Start(); err != nil {
		t.Fatal(err)
	}
	f.group = sh.Process.Pid
	t.Cleanup(func() {
		_ = syscall.Kill(-sh.Process.Pid, syscall.SIGTERM)
		for range 50 { // they end by themselves
			if syscall.Kill(-sh.Process.Pid, 0) != nil {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		_ = syscall.Kill(-sh.Process.Pid, syscall.SIGKILL)
		out, _ := os.ReadFile(log.Name())
		t.Logf("%s", tail(out))
	})
	if err := sh.Wait(); err != nil {
		t.Fatalf("the page's commands: %v", err)
	}
}

// last asks for one more prediction, and tells the server to end while the logger has not sent it.
func (f *follower) last(t *testing.T, g guide) {
	answer, err := http.Post("http://"+f.server+g.lastPath, "application/json", strings.NewReader(g.lastBody))
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Fatal(answer.Status)
	}
	if err := syscall.Kill(-f.group, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
}

// python is an interpreter with what a line of the page installs.
func (f *follower) python(t *testing.T, line string) string {
	if there := os.Getenv("PLUMBLINE_INTEGRATIONS_PYTHON"); there != "" { // where they are installed already
		return there
	}
	var packages, torch []string
	for _, m := range regexp.MustCompile(`"([^"]+)"|(\S+)`).FindAllStringSubmatch(line, -1) {
		if strings.HasPrefix(m[2], "torch==") { // its CUDA libraries are 3 GB
			torch = []string{"-m", "pip", "install", "-q", "--no-deps", m[2]}
			packages = append(packages, "filelock", "fsspec", "jinja2", "networkx", "sympy", "typing-extensions")
			continue
		}
		packages = append(packages, m[1]+m[2])
	}
	python := pythonWith(t, packages[2:]...)
	if torch != nil {
		for _, args := range [][]string{torch, {filepath.Join(root, "bench", "cpu_torch.py")}} {
			if out, err := exec.Command(python, args...).CombinedOutput(); err != nil {
				t.Fatalf("%v: %v\n%s", args, err, tail(out))
			}
		}
	}
	return python
}

// givenDatabase is a PostgreSQL with logical decoding, and Kafka Connect.
func givenDatabase(t *testing.T, f *follower) {
	for _, program := range []string{"mvn", "java", "psql"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err)
		}
	}
	server := pgtest.Start(t)
	dsn := server.Database(t)
	db, err := sql.Open("postgres", dsn)
	if err == nil {
		_, err = db.Exec("ALTER SYSTEM SET wal_level = logical")
		_ = db.Close()
	}
	server.Kill()
	if err == nil {
		err = server.Launch()
	}
	if err != nil {
		t.Fatal(err)
	}
	host, port, _ := net.SplitHostPort(server.Address)
	f.env = append(f.env, "PGHOST="+host, "PGPORT="+port, "PGUSER=plumbline", "PGPASSWORD="+pgtest.Password,
		"PGDATABASE="+dsn[strings.Index(dsn, "dbname=")+len("dbname="):strings.LastIndex(dsn, " ")])
	jars := filepath.Join(root, "internal", "integration", "testdata", "connect", "target", "dependency")
	fetch := exec.Command("mvn", "-q", "-B", "-ntp", "-f", filepath.Join(jars, "..", "..", "pom.xml"),
		"dependency:copy-dependencies", "-DincludeScope=runtime")
	if out, err := fetch.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", fetch.Args, err, tail(out))
	}
	f.program(t, "connect-standalone.sh", fmt.Sprintf(`exec java -Xmx256m -cp '%s/*' \
	-Dlog4j2.configurationFile=file:%s org.apache.kafka.connect.cli.ConnectStandalone "$@"`,
		jars, filepath.Join(root, "deploy", "kafka", "log4j2.yaml")))
}

// program puts one on the PATH of the page's commands.
func (f *follower) program(t *testing.T, name, script string) {
	if err := os.WriteFile(filepath.Join(f.bin, name), []byte("#!/bin/bash\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
}

// givenLanguageModel answers as vLLM and OpenAI document it: the word "yes" has 0.8 in three spellings, "no" 0.1, and
// -9999 stands for what is not among the likeliest.
func givenLanguageModel(t *testing.T, f *follower) {
	var n atomic.Int64
	answer := func(w http.ResponseWriter, r *http.Request) {
		var ask struct {
			Model, Messages any
			MaxTokens       int  `json:"max_tokens"`
			Logprobs        bool `json:"logprobs"`
			TopLogprobs     int  `json:"top_logprobs"`
		}
		err := json.NewDecoder(r.Body).Decode(&ask)
		if err != nil || r.URL.Path != "/v1/chat/completions" || ask.Model == nil || ask.Messages == nil ||
			ask.MaxTokens != 1 || !ask.Logprobs || ask.TopLogprobs < 1 || ask.TopLogprobs > 20 {
			http.Error(w, `{"error": {"message": "not as documented", "type": "invalid_request_error"}}`, 400)
			return
		}
		top := []any{}
		for token, p := range map[string]float64{"yes": 0.5, "Yes": 0.2, " yes": 0.1, "no": 0.1, "maybe": 0.05} {
			top = append(top, keys{"token": token, "logprob": math.Log(p), "bytes": []byte(token)})
		}
		top = append(top, keys{"token": "uns", "logprob": -9999.0, "bytes": nil})
		first := keys{"token": "yes", "logprob": math.Log(0.5), "bytes": nil, "top_logprobs": top}
		w.Header().Set("Content-Type", "application/json")
		choice := keys{"index": 0, "finish_reason": "length",
			"message":  keys{"role": "assistant", "content": "yes", "refusal": nil},
			"logprobs": keys{"content": []any{first}, "refusal": nil}}
		_, _ = w.Write(asJSON(keys{"id": fmt.Sprintf("chatcmpl-%d", n.Add(1)), "object": "chat.completion",
			"created": time.Now().Unix(), "model": ask.Model, "choices": []any{choice},
			"usage": keys{"prompt_tokens": 12, "completion_tokens": 1, "total_tokens": 13}}))
	}
	server := httptest.NewServer(http.HandlerFunc(answer))
	t.Cleanup(server.Close)
	f.replace("http://localhost:8000", server.URL)
}

// givenTriton is the server of a package, whose backend wants the interpreter's stub beside it.
func givenTriton(t *testing.T, f *follower) {
	python := pythonWith(t, "--no-deps", "nvidia-pytriton==0.7.0", "numpy==1.26.4")
	out, err := exec.Command(python, "-c", "import sys, sysconfig; print(sysconfig.get_path('platlib'), "+
		"'%d.%d' % sys.version_info[:2])").Output()
	if err != nil {
		t.Fatal(err)
	}
	packages, version, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	f.program(t, "tritonserver", fmt.Sprintf(`export PYTHONPATH=%[1]s PATH=%[3]s:$PATH
export LD_LIBRARY_PATH=%[1]s/nvidia_pytriton.libs
server=%[1]s/pytriton/tritonserver
cp "$server/python_backend_stubs/%[2]s/triton_python_backend_stub" "$server/backends/python/"
exec "$server/bin/tritonserver" --backend-directory "$server/backends" "$@"`, packages, version, filepath.Dir(python)))
}
