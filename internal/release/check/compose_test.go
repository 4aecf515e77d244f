package check

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

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

// TestComposeFile: the file is valid, all that it mounts is there, and no port is open to other machines.
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
