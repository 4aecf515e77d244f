package layout

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const module = "github.com/plumbline/plumbline"

// rules is the import table: leaves import nothing of ours, the middle imports leaves, only the top imports all.
// A pattern "x/..." matches x and everything below it. The first rule whose pkg matches a package holds for it, and
// what its may does not list, the package may not import (its own sub-packages under the same pattern included).
// third lists the modules outside the standard library; nil means any.
var rules = []struct {
	pkg   string
	may   []string
	third []string
}{
	{pkg: "calib/onnx", may: []string{"calib/calibrator"}, third: []string{"google.golang.org/protobuf"}},
	{pkg: "calib/...", may: []string{"calib/...", "internal/binenc", "internal/vexp"},
		third: []string{"gonum.org/v1/gonum", "golang.org/x/sys/cpu"}},
	{pkg: "arrowio/parquet", may: []string{"arrowio/internal/record"}, third: []string{"github.com/apache/arrow/go/v17",
		"github.com/pierrec/lz4/v4"}},
	{pkg: "arrowio/...", may: []string{"arrowio/..."}, third: []string{
		"github.com/apache/arrow/go/v17/arrow", "github.com/klauspost/compress/zstd", "github.com/pierrec/lz4/v4",
		"github.com/zeebo/xxh3",
	}},
	{pkg: "pipeline/record", third: []string{}},
	{pkg: "pipeline/tracing", third: []string{}},
	{pkg: "pipeline/murmur", third: []string{}}, // the client links it
	{pkg: "pipeline/...", may: []string{"pipeline/...", "arrowio", "arrowio/half", "arrowio/wire", "internal/backoff",
		"internal/binenc", "internal/durable", "internal/faultlog", "internal/filelock", "internal/filesum",
		"internal/setting"}},
	{pkg: "operators", may: []string{"operators/...", "pipeline"}, third: []string{}},
	{pkg: "operators/join/store", may: []string{"internal/binenc", "internal/filesum", "internal/workdir"},
		third: []string{}},
	{pkg: "operators/join", may: []string{"operators/join/store", "pipeline", "arrowio", "arrowio/half", "calib/kernel",
		"internal/binenc", "internal/setting"}, third: []string{}},
	{pkg: "operators/model", may: []string{
		"operators/model/...", "operators/proving", "operators/slicing", "operators/sumconfig", "pipeline/...",
		"arrowio", "calib/...", "internal/binenc", "internal/faultlog",
	}},
	// A stage of the model task imports no other stage.
	{pkg: "operators/model/...", may: []string{
		"operators/model/stage", "operators/inforce", "operators/proving", "operators/slicing", "operators/sumconfig",
		"pipeline/...", "arrowio", "calib/...", "internal/binenc", "internal/setting",
	}},
	// An operator imports no other operator.
	{pkg: "operators/...", may: []string{
		"operators/inforce", "operators/proving", "operators/slicing", "operators/sumconfig", "pipeline",
		"pipeline/murmur", "pipeline/record", "arrowio", "arrowio/archivefile", "arrowio/half", "calib/...",
		"internal/backoff", "internal/binenc", "internal/setting", "internal/workdir",
	}},
	{pkg: "sinks/otlp", may: []string{"pipeline/tracing", "internal/backoff", "internal/faultlog",
		"internal/setting"},
		third: []string{"google.golang.org/protobuf/encoding/protowire",
			"github.com/prometheus/client_golang/prometheus"}},
	{pkg: "sinks/metrics", may: []string{"pipeline", "pipeline/record", "sinks/history"}},
	{pkg: "sinks/...", may: []string{"pipeline/...", "internal/backoff", "internal/binenc", "internal/durable",
		"internal/faultlog", "internal/setting", "arrowio", "arrowio/archivefile", "calib/..."}},
	{pkg: "web/ingest", may: []string{"arrowio", "arrowio/wire", "pipeline/inputs", "pipeline/tracing", "web/budget",
		"web/reply", "internal/faultlog"},
		third: []string{"google.golang.org/protobuf/encoding/protowire"}},
	{pkg: "web/calibrate", may: []string{"arrowio", "calib/calibrator", "web/budget", "web/reply"}, third: []string{}},
	{pkg: "web/budget", third: []string{"golang.org/x/sync/semaphore"}},
	{pkg: "web/reply", third: []string{}},
	{pkg: "web/...", may: []string{"pipeline/record", "sinks/history", "web/reply"}},
	{pkg: "trainer/service", may: []string{"trainer/...", "calib/...", "pipeline/record", "internal/durable",
		"internal/setting"}},
	// The one package of trainer that reads files: all formats of ours are in arrowio.
	{pkg: "trainer/dataset", may: []string{"trainer/...", "calib/...", "arrowio/..."}},
	{pkg: "trainer/...", may: []string{"trainer/...", "calib/...", "internal/vexp"}},
	{pkg: "cmd/...", may: []string{"..."}},
	{pkg: "examples/data", may: []string{"examples/digits", "arrowio/...", "trainer/..."}},
	{pkg: "examples/producer/go", may: []string{"client"}},
	{pkg: "examples/...", may: []string{"examples/...", "arrowio"}},
	{pkg: "internal/eventually", third: []string{}},
	{pkg: "internal/faulty", may: []string{"arrowio", "pipeline"}},
	{pkg: "internal/feed/...", may: []string{"internal/feed/...", "arrowio/...", "pipeline/murmur"}},
	{pkg: "internal/backoff", third: []string{}}, // the client links it
	{pkg: "internal/binenc", third: []string{}},
	{pkg: "internal/faultlog", third: []string{}},
	{pkg: "internal/filesum", third: []string{"github.com/zeebo/xxh3"}},
	{pkg: "internal/nearest", third: []string{}},
	{pkg: "internal/cli", may: []string{"internal/faultlog", "internal/nearest"},
		third: []string{"github.com/spf13/cobra", "github.com/spf13/pflag"}},
	{pkg: "internal/backup", third: []string{"go.etcd.io/bbolt"}},
	{pkg: "internal/printable", third: []string{}},
	{pkg: "internal/batchtest", may: []string{"arrowio", "arrowio/table", "calib/calibrator", "pipeline",
		"pipeline/murmur"}},
	{pkg: "internal/worldtest", may: []string{
		"calib/acc", "internal/batchtest", "operators/model/refit", "operators/model/rule", "operators/model/window",
		"pipeline", "pipeline/record",
	}},
	{pkg: "internal/testsize", third: []string{}},
	{pkg: "internal/vexp", third: []string{"golang.org/x/sys/cpu"}},
	{pkg: "internal/config", may: []string{
		"calib/acc", "internal/nearest", "internal/setting", "operators/...", "pipeline/...", "sinks/...",
		"trainer/service", "web",
	}},
	{pkg: "internal/setting", third: []string{}},
	{pkg: "internal/workdir", may: []string{"internal/filelock"}, third: []string{}},
	{pkg: "internal/filelock", third: []string{}},
	{pkg: "internal/kafkatest"},
	{pkg: "internal/layout"},
	{pkg: "internal/oracle", third: []string{}},
	{pkg: "internal/engine/...", may: []string{"..."}},
	{pkg: "internal/trainerd", may: []string{"internal/config", "internal/engine", "internal/engine/heads",
		"internal/faultlog", "internal/filelock", "internal/kafkaclient", "pipeline/...", "trainer/...", "web"}},
	{pkg: "internal/ruletest", may: []string{"internal/config", "internal/engine", "internal/feed", "arrowio/...",
		"pipeline/..."}},
	{pkg: "internal/plan", may: []string{"internal/config", "operators/model/window",
		"operators/validate"}, third: []string{}},
	{pkg: "internal/producer", may: []string{"internal/feed"}},
	// It runs everything in one process, as a user would.
	{pkg: "internal/demo", may: []string{"..."}},
	{pkg: "client", may: []string{"arrowio", "pipeline/murmur", "calib/calibrator", "internal/backoff"},
		third: []string{"github.com/segmentio/kafka-go"}},
	{pkg: "internal/standalone", may: []string{"..."}},
	{pkg: "internal/durable", third: []string{}},
	{pkg: "internal/embedded", may: []string{"internal/durable", "internal/embedded/seglog", "internal/filelock"}},
	{pkg: "internal/embedded/seglog", may: []string{"internal/durable"}, third: []string{}},
	{pkg: "internal/plot", third: []string{"golang.org/x/image"}},
	{pkg: "internal/texttable", may: []string{"calib/compare", "internal/printable"}, third: []string{}},
	{pkg: "internal/progress", may: []string{"internal/printable"},
		third: []string{"github.com/schollz/progressbar/v3", "golang.org/x/term"}},
	{pkg: "internal/training", may: []string{"internal/offline", "internal/progress", "internal/texttable",
		"internal/diagram", "internal/plot", "calib/metric", "trainer/..."}},
	{pkg: "internal/diagram", may: []string{"calib/...", "trainer/recipe", "internal/plot"}},
	{pkg: "internal/disk", third: []string{"golang.org/x/sys/unix"}},
	{pkg: "internal/doctor", may: []string{"internal/config", "internal/disk", "internal/kafkaclient",
		"internal/printable", "pipeline/...", "arrowio"}},
	{pkg: "internal/heap", may: []string{"trainer/data"}, third: []string{}},
	{pkg: "internal/control", may: []string{"pipeline/record"}, third: []string{}},
	{pkg: "internal/inspect", may: []string{"calib/...", "pipeline"}},
	{pkg: "internal/offline", may: []string{"internal/feed", "internal/diagram", "internal/nearest", "internal/plot",
		"internal/texttable", "calib/...", "arrowio/table", "trainer/data", "trainer/head"}},
	{pkg: "internal/buildinfo", third: []string{}},
	{pkg: "internal/kafkaclient", may: []string{"internal/config", "pipeline", "pipeline/kafkaio"}},
	{pkg: "internal/section", third: []string{}},
	{pkg: "internal/realdata", may: []string{"arrowio/npy"}, third: []string{}},
	{pkg: "internal/pgtest", third: []string{"github.com/lib/pq"}},
	{pkg: "internal/integration", may: []string{"arrowio", "pipeline/record"}},
}

func TestImports(t *testing.T) {
	for _, p := range list(t) {
		pkg := strings.TrimPrefix(strings.TrimPrefix(p.path, module), "/")
		rule := -1
		for i := range rules {
			if matches(rules[i].pkg, pkg) {
				rule = i
				break
			}
		}
		if rule < 0 {
			t.Errorf("%s: no rule for this package; add it to the table", pkg)
			continue
		}
		for _, imp := range p.imports {
			if !allowed(imp, rules[rule].may, rules[rule].third) {
				t.Errorf("%s imports %s; allowed of ours: %v, of others: %s", pkg, imp, rules[rule].may,
					describe(rules[rule].third))
			}
		}
	}
}

// TestHeavyImports keeps what is large out of the binary, and Parquet in one package.
func TestHeavyImports(t *testing.T) {
	const arrow = "github.com/apache/arrow/go/v17/"
	cmd := exec.Command("go", "list", "-deps", module+"/cmd/plumbline")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for imp := range strings.FieldsSeq(string(out)) {
		for _, heavy := range []string{arrow + "arrow/compute", arrow + "arrow/flight", arrow + "parquet/pqarrow",
			"google.golang.org/grpc"} {
			if strings.HasPrefix(imp, heavy) {
				t.Errorf("cmd/plumbline links %s", imp)
			}
		}
	}
	for _, p := range list(t) {
		for _, imp := range p.imports {
			if strings.HasPrefix(imp, arrow+"parquet") && p.path != module+"/arrowio/parquet" {
				t.Errorf("%s imports %s: only arrowio/parquet may", p.path, imp)
			}
		}
	}
}

// TestRulesBite keeps the matcher honest: each pair is one the table must refuse.
func TestRulesBite(t *testing.T) {
	for _, c := range []struct {
		imp        string
		may, third []string
	}{
		{module + "/pipeline", []string{"calib/..."}, nil},
		{module + "/calibration", []string{"calib/..."}, nil},
		{module + "/pipeline/record", []string{"pipeline"}, nil},
		{module, []string{"calib/..."}, nil},
		{"github.com/segmentio/kafka-go", nil, []string{"gonum.org/v1/gonum"}},
		{"gonum.org/v1/gonumx", nil, []string{"gonum.org/v1/gonum"}},
	} {
		if allowed(c.imp, c.may, c.third) {
			t.Errorf("import of %s is allowed by %v, %v; want refused", c.imp, c.may, c.third)
		}
	}
}

type pkg struct {
	path    string
	imports []string
}

// list returns every package of the module with its direct imports, test files excepted.
func list(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-e", "-f", `{{.ImportPath}}{{range .Imports}} {{.}}{{end}}`, module+"/...")
	cmd.Dir = filepath.Join("..", "..")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var pkgs []pkg
	for sc := bufio.NewScanner(bytes.NewReader(out)); sc.Scan(); {
		if f := strings.Fields(sc.Text()); len(f) > 0 {
			pkgs = append(pkgs, pkg{path: f[0], imports: f[1:]})
		}
	}
	if len(pkgs) == 0 {
		t.Fatal("go list: no packages")
	}
	return pkgs
}

// allowed says whether a package with these lists may import imp. The standard library always: its first path
// element has no dot.
func allowed(imp string, may, third []string) bool {
	if imp == module || strings.HasPrefix(imp, module+"/") {
		rel := strings.TrimPrefix(strings.TrimPrefix(imp, module), "/")
		for _, m := range may {
			if matches(m, rel) {
				return true
			}
		}
		return false
	}
	first, _, _ := strings.Cut(imp, "/")
	if !strings.Contains(first, ".") || third == nil {
		return true
	}
	for _, m := range third {
		if imp == m || strings.HasPrefix(imp, m+"/") {
			return true
		}
	}
	return false
}

func matches(pattern, path string) bool {
	if pattern == "..." {
		return true
	}
	if base, ok := strings.CutSuffix(pattern, "/..."); ok {
		return path == base || strings.HasPrefix(path, base+"/")
	}
	return path == pattern
}

func describe(third []string) string {
	if third == nil {
		return "any"
	}
	return "[" + strings.Join(third, " ") + "]"
}
