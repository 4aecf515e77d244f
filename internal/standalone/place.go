package standalone

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/internal/durable"
)

// ConfigFile is the name of the configuration in the directory.
const ConfigFile = "plumbline.yaml"

// movedFile says where the topics of a directory have gone.
const movedFile = "moved"

// ErrUsage is an error of whoever gave the options.
var ErrUsage = errors.New("usage")

// configOf loads the configuration of a directory; found is false where there is none.
func configOf(dir string) (c config.Config, found bool, err error) {
	path := filepath.Join(dir, ConfigFile)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return c, false, nil
	}
	c, err = config.Load(path)
	if err != nil {
		return c, true, err
	}
	if len(c.Kafka.Brokers) != 1 || !onLoopback(c.Kafka.Brokers[0]) {
		return c, true, fmt.Errorf("%s: kafka.brokers %q: must be one address of loopback with its port, "+
			"where the embedded log listens", path, strings.Join(c.Kafka.Brokers, ","))
	}
	return c, true, nil
}

func onLoopback(address string) bool {
	host, port, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return err == nil && port != "0" && (host == "localhost" || ip != nil && ip.IsLoopback())
}

// begin writes the configuration of a new directory. One partition needs no splitting by id, whatever the key.
func begin(dir, listen string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	if len(entries) > 0 {
		return fmt.Errorf("%w: %s holds %s and no %s: must be an empty directory, a new one, or one of this command",
			ErrUsage, dir, entries[0].Name(), ConfigFile)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0") // a free port, which is kept
	if err != nil {
		return err
	}
	broker := l.Addr().String()
	if err := l.Close(); err != nil {
		return err
	}
	if listen == "" {
		listen = config.Default().HTTP.Listen
	}
	text := fmt.Sprintf(`# plumbline without Kafka: plumbline serve --embedded %s
# All other keys have defaults: plumbline config example prints them.
kafka:
  brokers: [%q] # the log in this process, for loopback only
  partitions: 1

topics:
  keyed: true # one partition has every id

checkpoints:
  dir: %s # the state

http:
  listen: %q
  ingest: true # takes rows at /api/v1/ingest/MODEL/predictions and /labels

# slices:
#   columns: [region] # cohorts with statistics of their own
`, dir, broker, strconv.Quote(filepath.Join(dir, "state")), listen)
	path := filepath.Join(dir, ConfigFile)
	return durable.WriteFile(path, []byte(text))
}

// moved says where the topics of a directory are now; "" while they are here.
func moved(dir string) (string, error) {
	b, err := os.ReadFile(filepath.Join(dir, movedFile))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return strings.TrimSpace(string(b)), err
}
