package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"

	"github.com/plumbline/plumbline/bench/queue"
)

// store has the trials that are done, in memory and in a file of JSON lines.
type store struct {
	path string
	done map[key]trial
}

func openStore(path string, fresh bool) (*store, error) {
	s := &store{path, map[key]trial{}}
	if fresh {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
	}
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	want := map[key]job{}
	for _, j := range all() {
		want[j.key] = j
	}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var t trial
		if json.Unmarshal(lines.Bytes(), &t) != nil { // a run that was stopped leaves half a line
			continue
		}
		if j, ok := want[t.key]; ok && j.made(t) {
			s.done[t.key] = t
		}
	}
	return s, lines.Err()
}

// made says whether a trial is of this job's settings, which may have been changed since.
func (j job) made(t trial) bool {
	if len(j.method.grid) == 0 || t.Error != "" && t.Config == nil {
		return true
	}
	c := j.method.grid[j.key.Point]
	c.Seed = j.key.Seed
	return reflect.DeepEqual(&c, t.Config)
}

// measure runs the jobs that have no trial yet, and appends the trials as they come.
func (s *store) measure(src *source, which choice, jobs int, commit string) error {
	var todo []job
	for _, j := range all() {
		if _, ok := s.done[j.key]; !ok && which.takes(j.key) {
			todo = append(todo, j)
		}
	}
	if err := os.MkdirAll(filepath.Dir(s.path), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(s.path, os.O_APPEND|os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if err := endLine(f); err != nil {
		return errors.Join(err, f.Close())
	}
	out, count := json.NewEncoder(f), 0
	for t := range queue.Results(todo, jobs, func(j job) trial { return j.run(src, commit) }) {
		s.done[t.key] = t
		err = errors.Join(err, out.Encode(t))
		if count++; count%100 == 0 {
			fmt.Fprintf(os.Stderr, "%d of %d trials\n", count, len(todo))
		}
	}
	return errors.Join(err, f.Close())
}

// endLine ends the half line of a run that was stopped, so that the next trial has a line of its own.
func endLine(f *os.File) error {
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return err
	}
	var last [1]byte
	if _, err := f.ReadAt(last[:], info.Size()-1); err != nil {
		return err
	}
	if last[0] != '\n' {
		_, err = f.Write([]byte("\n"))
	}
	return err
}
