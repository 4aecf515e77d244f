package buildinfo

import (
	"runtime"
	"runtime/debug"
)

// version is set by release builds: -ldflags "-X github.com/plumbline/plumbline/internal/buildinfo.version=v1.2.3".
// Otherwise it is that of the build information.
var version string

// Info is what `plumbline version --json` prints.
type Info struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"` // commit
	Time     string `json:"time,omitempty"`     // of the commit
	Modified bool   `json:"modified,omitempty"` // the tree had changes
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// Read returns what the linker and the version control left in this binary.
func Read() Info {
	v := Info{Version: "devel", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		if m := info.Main.Version; m != "" && m != "(devel)" {
			v.Version = m
		}
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				v.Revision = s.Value
			case "vcs.time":
				v.Time = s.Value
			case "vcs.modified":
				v.Modified = s.Value == "true"
			}
		}
	}
	if version != "" {
		v.Version = version
	}
	return v
}

// Name is version and commit in one word, for records.
func Name() string {
	v := Read()
	name := v.Version
	if v.Revision != "" {
		name += "+" + v.Revision[:min(len(v.Revision), 12)]
	}
	if v.Modified {
		name += ".modified"
	}
	return name
}
