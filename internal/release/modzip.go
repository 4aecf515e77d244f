package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// writeModule puts the repository at dir into a module proxy in a folder, as `go install …@version` would find it on a
// public one.
func writeModule(dir, version, proxy string) error {
	m := module.Version{Path: "github.com/plumbline/plumbline", Version: version}
	at := filepath.Join(proxy, m.Path, "@v")
	if err := os.MkdirAll(at, 0o755); err != nil {
		return err
	}
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return err
	}
	info, err := json.Marshal(map[string]any{"Version": version, "Time": time.Unix(0, 0).UTC()})
	if err != nil {
		return err
	}
	files := map[string][]byte{version + ".mod": mod, version + ".info": info, "list": []byte(version + "\n")}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(at, name), text, 0o644); err != nil {
			return err
		}
	}
	out, err := os.Create(filepath.Join(at, version+".zip"))
	if err != nil {
		return err
	}
	if err := zip.CreateFromVCS(out, m, dir, "HEAD", ""); err != nil {
		return err
	}
	return out.Close()
}
