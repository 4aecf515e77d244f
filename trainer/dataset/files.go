package dataset

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"

	"github.com/plumbline/plumbline/arrowio/archivefile"
)

// shadowSuffix is what the versions of heads have behind that of their backbone.
var shadowSuffix = regexp.MustCompile(`(\+head[0-9]+)+$`)

// backbone is the version whose features a version has: a new head is put on the features of the old one.
func backbone(version string) string { return shadowSuffix.ReplaceAllString(version, "") }

// AddFiles adds the rows of files and directories, and returns which were read and which were left out. Features of two
// backbones mean two things: files that name a model and version are taken where these are the wanted model and
// backbone, in directories too. Files that name none are taken.
func (s *Source) AddFiles(entries []string, model, version string) (read, leftOut []string, err error) {
	of := backbone(version)
	s.wanted = func(m, v string) bool {
		return (m == "" || m == model) && (v == "" || backbone(v) == of)
	}
	others := map[string]int{}
	for _, entry := range entries {
		paths, err := s.entry(entry, others)
		read = append(read, paths...)
		if err != nil {
			return read, leftOut, err
		}
	}
	for _, whose := range slices.Sorted(maps.Keys(others)) {
		leftOut = append(leftOut, fmt.Sprintf("%d files of %s: the request is of %s", others[whose], whose,
			versionText(model, version)))
	}
	return read, leftOut, nil
}

func versionText(model, version string) string {
	return fmt.Sprintf("model %q version %q", model, version)
}

// entry adds a file or those of a directory, and counts those of others by whose they are.
func (s *Source) entry(name string, others map[string]int) (read []string, err error) {
	paths, listed, err := listFiles(s, name)
	if err != nil {
		return nil, fmt.Errorf("trainer.files: %w", err)
	}
	for _, path := range paths {
		info, err := archivefile.ReadInfo(path)
		if err == nil && !s.wanted(info.Model, info.Version) {
			others[versionText(info.Model, info.Version)]++
			continue
		}
		before := s.Used.Files
		err = s.try(path, !listed || len(paths) == 1, func() error { return s.any(path, "", "") })
		var other otherVersionError
		switch {
		case errors.As(err, &other):
			others[versionText(other.model, other.version)]++
		case err != nil:
			return read, err
		case s.Used.Files > before:
			read = append(read, path)
		}
	}
	return read, nil
}

// listFiles are the files of an entry: itself, or those of a directory. In a directory with files of an archive, other
// files are damaged or foreign.
func listFiles(s *Source, entry string) (paths []string, listed bool, err error) {
	if st, err := os.Stat(entry); err != nil || !st.IsDir() {
		//nolint:nilerr // opening it returns the error; npz files have the name of an array behind theirs
		return []string{entry}, false, nil
	}
	if paths, err = archiveListing(entry); err != nil {
		return nil, true, err
	}
	var archive, why []string
	for _, path := range paths {
		if _, err := archivefile.ReadInfo(path); err == nil {
			archive = append(archive, path)
		} else {
			why = append(why, err.Error())
		}
	}
	if len(archive) == 0 {
		return paths, true, nil
	}
	s.Used.Unreadable = append(s.Used.Unreadable, why...)
	return archive, true, nil
}
