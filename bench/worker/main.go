package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"time"
)

// request names a task of tasks and its arrays, by file name without the extension.
type request struct {
	Task   string `json:"task"`
	Scores string `json:"scores"`
	Labels string `json:"labels"`
	// Values are the task's own numbers: temperatures, penalties, the places where a map is wanted.
	Values []float64 `json:"values"`
}

// answer is what a task found, by name.
type answer struct {
	Seconds float64              `json:"seconds"`
	Results map[string][]float64 `json:"results,omitempty"`
	Error   string               `json:"error,omitempty"`
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: worker FOLDER")
		os.Exit(2)
	}
	d := data{folder: os.Args[1]}
	in, out := bufio.NewScanner(os.Stdin), json.NewEncoder(os.Stdout)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		var q request
		err := json.Unmarshal(in.Bytes(), &q)
		var a answer
		if err == nil {
			a, err = d.do(q)
		}
		if err != nil {
			a.Error = err.Error()
		}
		if err := out.Encode(a); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// do runs one task. Its garbage is collected on its own time if the runtime starts a cycle, that of the one before is
// not.
func (d *data) do(q request) (answer, error) {
	task, ok := tasks[q.Task]
	if !ok {
		return answer{}, fmt.Errorf("no task %q", q.Task)
	}
	in, err := d.inputsOf(q)
	if err != nil {
		return answer{}, err
	}
	runtime.GC()
	start := time.Now()
	results, err := task(in)
	seconds := time.Since(start).Seconds()
	if err != nil {
		return answer{}, err
	}
	a := answer{Seconds: seconds}
	if results != nil {
		a.Results = results()
	}
	return a, nil
}
