package table

import (
	"bytes"
	"compress/gzip"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The rows of every file here: these probabilities, and labels 0, 1, 2, 1.
var (
	oddProbs  = []float64{.5, .25, .25, .125, .75, .125, .25, .25, .5, .75, .125, .125}
	oddLabels = []int32{0, 1, 2, 1}
)

const (
	oddCSV = "id,ts,probs_0,probs_1,probs_2,label,region\na,1,0.5,0.25,0.25,0,eu\nb,2,0.125,0.75,0.125,1,us\n" +
		"c,3,0.25,0.25,0.5,2,eu\nd,4,0.75,0.125,0.125,1,us\n"
	oddJSON = `{"probs":[0.5,0.25,0.25],"label":0}
{"probs":[0.125,0.75,0.125],"label":1}
{"probs":[0.25,0.25,0.5],"label":2}
{"probs":[0.75,0.125,0.125],"label":1}
`
)

// TestOddFiles: what spreadsheets, pandas, Hugging Face, MLflow and others write is read as the same rows.
func TestOddFiles(t *testing.T) {
	swap := strings.NewReplacer
	semicolon := swap(",", ";").Replace(oddCSV)
	comma := swap(",", ";", ".", ",").Replace(oddCSV)
	crlf := swap("\n", "\r\n")
	lines := strings.Split(strings.TrimSpace(oddJSON), "\n")
	named := swap(`"label":0`, `"label":"cat"`, `"label":1`, `"label":"dog"`, `"label":2`,
		`"label":"owl"`).Replace(oddJSON)
	for name, text := range map[string]string{
		"byte order mark":                     "\ufeff" + oddCSV,
		"Excel's CSV UTF-8":                   "\ufeff" + crlf.Replace(quoted(`","`)),
		"semicolons":                          semicolon,
		"semicolons and sep=":                 "\ufeffsep=;\r\n" + crlf.Replace(semicolon),
		"decimal commas":                      comma,
		"a version that looks like thousands": swap("region", "version", "eu", "1.200", "us", "1.300").Replace(comma),
		"decimal commas, Excel":               "\ufeff" + crlf.Replace(comma),
		"tabs, decimal commas":                swap(",", "\t", ".", ",").Replace(oddCSV),
		"quotes behind spaces":                quoted(`", "`),
		"gzip":                                zipped(t, comma),
		"blank lines":                         "\n" + oddCSV + "\n\n",
		"lines of spaces":                     "  \n" + semicolon + "\n \t\n  \n",
		"index":                               swap("id,", ",").Replace(oddCSV),
		"other cases": swap("id,ts,probs_0,probs_1,probs_2,label",
			"ID,Time,Probs_0,Probs_1,Probs_2,Label").Replace(oddCSV),
		"times of DuckDB and PostgreSQL": swap("a,1", "a,2026-01-02 03:04:05+00", "b,2",
			"b,2026-01-02 03:04:05.5-03").Replace(oddCSV),
		"times with zones": swap("a,1", "a,2026-01-02T03:04:05+0200", "b,2",
			"b,2026-01-02 03:04:05+0200").Replace(oddCSV),
		"NannyML": swap("probs_0,probs_1,probs_2,label", "y_pred_proba_cat,y_pred_proba_dog,y_pred_proba_owl,y_true",
			",0,", ",cat,", ",1,e", ",dog,e", ",1,u", ",dog,u", ",2,e", ",owl,e").Replace(oddCSV),
		"JSON lines":    oddJSON,
		"JSON, Windows": "\ufeff" + crlf.Replace(oddJSON),
		"JSON, odd spacing": "\ufeff \n" +
			swap(`{`, "{ \n ", `:`, " \t: ", `,`, " ,\n", `}`, " \r\n }").Replace(oddJSON),
		"JSON, odd names": swap(`"probs"`, `"\u0070robs"`, `,"label"`, `,"ä}":"]}\"{","b":{"c":[{}],"d":"\\"},"":null,`+
			`"labe\u006c"`).Replace(oddJSON),
		"JSON, a name twice": swap(`{"probs"`, `{"label":9,"probs":"none","probs"`).Replace(oddJSON),
		"JSON array":         "[" + strings.Join(lines, ",\n") + "]",
		"JSON in gzip":       zipped(t, oddJSON),
		"numbers as text": swap("[", `["`, ",0.", `","0.`, "]", `"]`, `:0}`, `:"0"}`, `:1}`,
			`:"1"}`).Replace(oddJSON),
		"a batch of one row": swap("[", "[[", "]", "]]").Replace(oddJSON),
		"labels in lists":    swap(":0}", ":[0]}", ":1}", ":[1]}", ":2}", ":[2]}").Replace(oddJSON),
		"one-hot labels":     swap(":0}", ":[1,0,0]}", ":1}", ":[0,1,0]}", ":2}", ":[0,0,1]}").Replace(oddJSON),
		"names of classes":   named,
		"scores by class":    byClass(named, `{"cat":`, `,"dog":`, `,"owl":`, "}"),
		"Hugging Face's pipelines": byClass(named, `[{"label":"cat","score":`, `},{"label":"dog","score":`,
			`},{"label":"owl","score":`, "}]"),
		"columns and names of classes": `{"classes":["cat","dog","owl"],"probs":[[0.5,0.25,0.25],` +
			`[0.125,0.75,0.125],[0.25,0.25,0.5],[0.75,0.125,0.125]],"y":[0,1,2,1]}`,
		"columns": `{"predictions":[[0.5,0.25,0.25],[0.125,0.75,0.125],[0.25,0.25,0.5],` +
			`[0.75,0.125,0.125]],"y":[0,1,2,1]}`,
		"dataframe_records":      `{"dataframe_records":[` + strings.Join(lines, ",") + `]}`,
		"dataframe_split":        `{"dataframe_split":` + oddSplit + `}`,
		"pandas, orient=split":   oddSplit,
		"pandas, orient=table":   `{"schema":{"fields":[{"name":"x"}]},"data":[` + strings.Join(lines, ",") + `]}`,
		"rows under another key": `{"rows":[` + strings.Join(lines, ",") + `]}`,
	} {
		t.Run(name, func(t *testing.T) { isOdd(t, writeOdd(t, text)) })
	}
	files, err := filepath.Glob("testdata/odd/*")
	if err != nil || len(files) < 10 {
		t.Fatal(files, err)
	}
	for _, path := range files {
		if !strings.Contains(path, "refused") {
			t.Run(filepath.Base(path), func(t *testing.T) { isOdd(t, path) })
		}
	}
}

// TestThreeDecimals: numbers of three decimals with a comma are fractions, whatever columns hold that are not read as
// numbers.
func TestThreeDecimals(t *testing.T) {
	for _, rest := range []string{"version\n2,345;-1,25;0;2.1\n", "price\n2,345;-1,25;0;2.5\n"} {
		x, err := Open(writeOdd(t, "logits_0;logits_1;label;"+rest), Options{})
		if err != nil || len(x.Scores64) != 2 || x.Scores64[0] != 2.345 {
			t.Errorf("%q: %+v, %v", rest, x, err)
		}
	}
}

const oddSplit = `{"columns":["probs_0","probs_1","probs_2","label"],"index":[0,1,2,3],` +
	`"data":[[0.5,0.25,0.25,0],[0.125,0.75,0.125,1],[0.25,0.25,0.5,2],[0.75,0.125,0.125,1]]}`

var oddArray = "[" + strings.ReplaceAll(strings.TrimSpace(oddJSON), "\n", ",") + "]"

// TestOddFilesAreRefusedInWords: what cannot be read says what to do.
func TestOddFilesAreRefusedInWords(t *testing.T) {
	swap := strings.NewReplacer
	for _, c := range []struct{ text, want string }{
		{swap("\n", "\r").Replace(oddCSV), "carriage return alone"},
		{"# from 2026\n" + oddCSV, "line 2 has 7 fields, and the header has 1: # from 2026"},
		{oddCSV[strings.IndexByte(oddCSV, '\n')+1:], "put a header before it, such as probs_0,probs_1,…,label"},
		{swap("0.5,", "50%,").Replace(oddCSV), "line 2, column probs_0: 50% is no number: write 0.5, not 50%"},
		{"prob;label\n22,5%;1\n", "22,5% is no number: write 0.225, not 22,5%"},
		{"prob;label;weight\n0,25;1;1.200\n", "column weight: 1.200 may be 1200 or a fraction, as other numbers"},
		{"prob;label;weight\n0.25;1;1,200\n", "line 2, column weight: 1,200 may be 1200 or a fraction"},
		{"id,prob\na,0.5\nK\xf6ln,0.5\n", "line 3, column id: \"K\\xf6ln\" is not UTF-8: save the file as CSV UTF-8"},
		{"prob;label;city\n0,5;1;K\xf6ln\n0,5;1;M\xfcnchen\n0,5;1;\xdc\xe4\n", "Windows-1252, as Excel saves CSV"},
		{swap("probs_0", "cat", "probs_1", "dog", "probs_2", "owl").Replace(oddCSV), "perhaps --prob cat,dog,owl"},
		{swap("probs", "out.p").Replace(oddJSON), "perhaps --prob out.p"},
		{swap(":0}", ":NaN}").Replace(oddJSON), "JSON has neither NaN nor Infinity; write null"},
		{swap("0.75", "-Infinity").Replace(oddJSON), "JSON has neither NaN nor Infinity"},
		{`{"probs_0":{"0":0.5,"1":0.25},"label":{"0":1,"1":0}}`, `orient="records"`},
		{`{"0":{"prob":0.5,"label":1},"1":{"prob":1,"label":1}}`, `orient="records"`},
		{oddArray[:len(oddArray)-1], "JSON, after row 4: the array of rows has no end"},
		{oddArray + oddArray, "JSON, after row 4: more follows the array of rows"},
		{oddArray + `{"probs":[0.1`, "JSON, after row 4: "},
		{damaged(zipped(t, oddArray)), "gzip: invalid checksum"},
		{`{"prob":[0.9,0.2,0.4],"label":[1,0,1],"weight":[1,100]}`, "column weight has 2 values, other columns have 3"},
		{`{"probs":[[0.5,0.5],[1,0]],"features":[[1],[2],[3]]}`, "column features has 3 values, other columns have 2"},
		{`{"out":[{"a":[1]}],"label":1}`, "out: neither numbers nor lists of numbers; write a list of numbers a row"},
		{"\xff\xfei\x00d\x00", "text in UTF-16; save it as UTF-8"},
		{"\x80\x04\x95", "a Python pickle, which is a program; save arrays with numpy.savez"},
		{"id,prob\r\n", "no rows"},
	} {
		if _, err := Open(writeOdd(t, c.text), Options{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.40q: got %v, want %s", c.text, err, c.want)
		}
	}
	if _, err := Open("testdata/odd/refused-complex.npz", Options{}); err == nil ||
		!strings.Contains(err.Error(), "array z complex64[4,3] is of complex numbers, which are no scores") {
		t.Errorf("complex numbers: got %v", err)
	}
	said := ""
	got, err := Open("testdata/odd/refused-objects.npz", Options{Note: func(s string) { said += s }})
	if err != nil || got.Label != nil || said != "" ||
		!strings.Contains(got.NoLabel.Error(), "Python objects, a program that is not run") {
		t.Errorf("Python objects: got %v, %v, %q", got, err, said)
	}
}

// TestLogitsThatLookLikeProbabilities: it is said of rows that could hardly be logits, and of no others.
func TestLogitsThatLookLikeProbabilities(t *testing.T) {
	const every = "every row lies in [0,1] and sums to 1"
	renamed := strings.ReplaceAll(oddCSV, "probs_", "logits_")
	for _, c := range []struct{ name, text, want string }{
		{"probabilities", oddCSV, ""},
		{"their names", renamed, "columns logits_0, logits_1, logits_2: taken as logits, although " + every},
		{"a list", strings.ReplaceAll(oddJSON, "probs", "logits"), every},
		{"one is not", strings.Replace(renamed, "0.75", "0.7", 1), ""},
		{"a score a row", "logit\n" + strings.Repeat("0.5\n", 50), "although every value lies in [0,1]"},
		{"few of them", "logit\n" + strings.Repeat("0.5\n", 40), ""},
	} {
		said := ""
		table, err := Open(writeOdd(t, c.text), Options{Note: func(s string) { said += s }})
		if err != nil || table.Probs != (c.name == "probabilities") || !strings.Contains(said, c.want) ||
			c.want == "" && said != "" {
			t.Errorf("%s: %v, %q, want %q", c.name, err, said, c.want)
		}
	}
}

// quoted has quotes around every cell.
func quoted(between string) string {
	text := strings.NewReplacer(",", between, "\n", "\"\n\"").Replace(`"` + oddCSV)
	return strings.TrimSuffix(text, `"`)
}

// byClass writes the lists of probabilities with something before each.
func byClass(text, first, second, third, end string) string {
	var out []string
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		list, rest, _ := strings.Cut(line[len(`{"probs":[`):], "]")
		p := strings.Split(list, ",")
		out = append(out, `{"probs":`+first+p[0]+second+p[1]+third+p[2]+end+rest)
	}
	return strings.Join(out, "\n")
}

func zipped(t *testing.T, text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// damaged has another checksum.
func damaged(zip string) string {
	b := []byte(zip)
	b[len(b)-6] ^= 1
	return string(b)
}

func writeOdd(t *testing.T, text string) string {
	path := filepath.Join(t.TempDir(), "odd")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func isOdd(t *testing.T, path string) {
	t.Helper()
	got, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got.N != 4 || got.K != 3 {
		t.Fatalf("got %d rows of %d", got.N, got.K)
	}
	equal(t, "labels", got.Label, oddLabels)
	for i, want := range oddProbs {
		p := got.score(i)
		if !got.Probs {
			p = math.Exp(p) // logits of these files are logarithms
		}
		if math.Abs(p-want) > 1e-9 {
			t.Errorf("score %d: got %v, want %v", i, p, want)
		}
	}
}
