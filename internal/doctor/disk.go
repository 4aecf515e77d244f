package doctor

import (
	"os"
	"path/filepath"

	"github.com/plumbline/plumbline/internal/disk"
	"github.com/plumbline/plumbline/pipeline"
)

// disks looks at every directory that is written to.
func (d *doctor) disks() {
	c := d.Config
	dirs := [][2]string{{"checkpoints.dir", c.Checkpoints.Dir}}
	if c.Checkpoints.Store == pipeline.StoreTopic {
		dirs = nil
	}
	if c.Archive.Directory != "" {
		dirs = append(dirs, [2]string{"archive.directory", c.Archive.Directory})
	}
	if p := c.History.Path; p != "" {
		dirs = append(dirs, [2]string{"history.path", filepath.Dir(p)})
	}
	for _, dir := range dirs {
		path, err := filepath.Abs(dir[1]) // what is found holds for the directory that the doctor runs in
		if err != nil {
			path = dir[1]
		}
		d.disk(dir[0], path)
	}
}

// Less than these is too little room.
const (
	littleRoom = 1 << 30
	noRoom     = 64 << 20
)

// disk makes and removes a file, and asks for the room that is left.
func (d *doctor) disk(key, dir string) {
	at := disk.Existing(dir)
	f, err := os.CreateTemp(at, ".doctor-*")
	if err != nil {
		d.say("disk", Bad, "let the user of plumbline write there, or set "+key, "%s: %v", key, err)
		return
	}
	_ = f.Close()
	_ = os.Remove(f.Name())
	space, told := disk.Under(at)
	switch free := space.Free; {
	case !told:
		d.say("disk", Unknown, "", "%s %s: this system does not tell how much is free", key, at)
	case free < noRoom:
		d.say("disk", Bad, "make room, or set "+key+" to a larger disk", "%s %s: %d MiB free", key, at, free>>20)
	case free < littleRoom:
		d.say("disk", Warn, "make room before it is full", "%s %s: %d MiB free", key, at, free>>20)
	default:
		d.say("disk", OK, "", "%s %s: %d GiB free, can be written", key, at, free>>30)
	}
}
