package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"

	"github.com/plumbline/plumbline/arrowio/archivefile"
	"github.com/plumbline/plumbline/pipeline/record"
)

// shadowSuffix is what the versions of heads have behind that of their backbone.
var shadowSuffix = regexp.MustCompile(`(\+head[0-9]+)+$`)

// backbone is the version whose features a version has: a new head is put on the features of the old one.
func backbone(version string) string { return shadowSuffix.ReplaceAllString(version, "") }

// files adds the rows of trainer.files. Features of two backbones mean two things: of files that say whose rows they have,
// those of the request's model and backbone are taken, in directories too; files that say nothing are taken.
func (l trainerLoader) files(_ context.Context, r record.Finetune, s *trainSource, used *trainerRows) error {
	of := backbone(r.Version)
	s.wanted = func(model, version string) bool {
		return (model == "" || model == r.Model) && (version == "" || backbone(version) == of)
	}
	others := map[string]int{}
	for _, file := range l.cfg.Trainer.Files {
		if err := l.addFiles(s, file, used, others); err != nil {
			return err
		}
	}
	for _, whose := range slices.Sorted(maps.Keys(others)) {
		used.LeftOut = append(used.LeftOut, fmt.Sprintf("%d files of %s: the request is of %s", others[whose], whose, versionText(r.Model, r.Version)))
	}
	return nil
}

func versionText(model, version string) string {
	return fmt.Sprintf("model %q version %q", model, version)
}

// addFiles adds the files of one entry of trainer.files, and counts those of others by whose they are.
func (l trainerLoader) addFiles(s *trainSource, entry string, used *trainerRows, others map[string]int) error {
	paths, listed, err := listFiles(s, entry)
	if err != nil {
		return fmt.Errorf("trainer.files: %w", err)
	}
	for _, path := range paths {
		info, err := archivefile.ReadInfo(path)
		if err == nil && !s.wanted(info.Model, info.Version) {
			others[versionText(info.Model, info.Version)]++
			continue
		}
		before := s.used.Files
		err = s.try(path, !listed || len(paths) == 1, func() error { return s.any(inputFlags{}, path) })
		var other otherVersionError
		switch {
		case errors.As(err, &other):
			others[versionText(other.model, other.version)]++
		case err != nil:
			return err
		case s.used.Files > before:
			used.Files = append(used.Files, path)
		}
	}
	return nil
}

// listFiles are the files of an entry: itself, or those of a directory. Where files of an archive are in it, what is none is
// damaged or somebody else's.
func listFiles(s *trainSource, entry string) (paths []string, listed bool, err error) {
	if st, err := os.Stat(entry); err != nil || !st.IsDir() {
		return []string{entry}, false, nil //nolint:nilerr // whoever opens it says what is wrong; npz files have the name of an array behind theirs
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
	s.used.Unreadable = append(s.used.Unreadable, why...)
	return archive, true, nil
}
