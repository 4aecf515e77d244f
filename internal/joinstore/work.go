package joinstore

// Work is a directory for the files of one task's state. It is worth nothing to any other process: the directories of
// those that are gone are removed when the next one of the same prefix is made.
type Work struct{ dir *workDir }

// NewWork makes a directory in base whose name begins with prefix.
func NewWork(base, prefix string) (*Work, error) {
	d, err := newWorkDir(base, prefix)
	if err != nil {
		return nil, err
	}
	return &Work{d}, nil
}

// Path is where the directory is.
func (w *Work) Path() string { return w.dir.path }

// Remove removes the directory with everything in it.
func (w *Work) Remove() error { return w.dir.remove() }
