package main

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// buildVersion is set by release builds: -ldflags "-X main.buildVersion=v1.2.3". Otherwise it is that of the build information.
var buildVersion string

// versionInfo is what `plumbline version --json` prints.
type versionInfo struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"` // commit
	Time     string `json:"time,omitempty"`     // of the commit
	Modified bool   `json:"modified,omitempty"` // the tree had changes
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of this binary",
		Args:  usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			v := readVersion()
			if jsonOutput(cmd) {
				return printJSON(cmd, v)
			}
			printf(cmd, "plumbline %s", v.Version)
			if v.Revision != "" {
				printf(cmd, " (%.12s, %s)", v.Revision, v.Time)
			}
			if v.Modified {
				printf(cmd, " modified")
			}
			printf(cmd, " %s %s\n", v.Go, v.Platform)
			return nil
		},
	}
}

func readVersion() versionInfo {
	v := versionInfo{Version: "devel", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
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
	if buildVersion != "" {
		v.Version = buildVersion
	}
	return v
}

// buildName is version and commit in one word, for records.
func buildName() string {
	v := readVersion()
	name := v.Version
	if v.Revision != "" {
		name += "+" + v.Revision[:min(len(v.Revision), 12)]
	}
	if v.Modified {
		name += ".modified"
	}
	return name
}
