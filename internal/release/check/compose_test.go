package check

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
)

const root = "../../.."

// project is the compose file as Docker reads it, every profile on.
func project(t *testing.T) *types.Project {
	t.Helper()
	o, err := cli.NewProjectOptions([]string{root + "/deploy/compose/compose.yaml"}, cli.WithProfiles([]string{"*"}))
	if err != nil {
		t.Fatal(err)
	}
	p, err := o.LoadProject(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// longestStop is the default of shutdown_timeout and some seconds.
const longestStop = types.Duration(30 * time.Second)

// TestComposeFile: the file is valid, all that it mounts is there, no port is open to other machines, and plumbline may
// take its last checkpoints.
func TestComposeFile(t *testing.T) {
	p := project(t)
	for _, want := range []string{"kafka", "topics", "plumbline", "producer", "prometheus", "alertmanager", "grafana",
		"s3", "backup", "upload", "download", "restore"} {
		if !slices.Contains(p.ServiceNames(), want) {
			t.Errorf("no service %s", want)
		}
	}
	for name, s := range p.Services {
		for _, v := range s.Volumes {
			if _, err := os.Stat(v.Source); v.Type == types.VolumeTypeBind && err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		run := len(s.Command) > 0 && s.Command[0] == "run"
		if run && (s.StopGracePeriod == nil || *s.StopGracePeriod < longestStop) {
			t.Errorf("%s: is killed before shutdown_timeout is over", name)
		}
		for _, port := range s.Ports {
			if port.HostIP != "127.0.0.1" {
				t.Errorf("%s: port %s is open to other machines", name, port.Published)
			}
		}
		if s.Build != nil {
			if _, err := os.Stat(filepath.Join(s.Build.Context, s.Build.Dockerfile)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}
