package bundle

import (
	"fmt"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/blackbox"
	"github.com/wasmactors/wasmactors/host/service"
)

// Recorder says what is kept of the last turns of guests, and where crash files are written.
type Recorder struct {
	Dir   string // absolute
	Bytes int64  // of all actors
	Actor int64  // of one actor, bytes
	Keep  int    // files
}

// defaultCrashes is the folder of crash files, relative to the manifest.
const defaultCrashes = "crashes"

var recorderShape = object("keeps the last turns of each guest, and writes a crash file when one fails",
	optional("dir", text(service.ReachWrite, "the folder for crash files, relative to the manifest (made if it is missing); default: "+defaultCrashes)),
	optional("bytes", sizeIn("what is kept of all actors; default: 64MiB", 1<<20, 1<<40)),
	optional("actor", sizeIn("what is kept of one actor: its snapshot, and what it was sent since; default: 256KiB", 4<<10, 1<<30)),
	optional("keep", count("how many crash files the folder has at most; the oldest are removed; default: 20", 10_000)),
)

// recorder reads the key recorder.
func (c *checker) recorder(m *Manifest, v view) *Recorder {
	if !v.given() {
		return nil
	}
	r := &Recorder{
		Bytes: int64(v.size("bytes", blackbox.DefaultBytes)), Actor: int64(v.size("actor", blackbox.DefaultActorBytes)),
		Keep: int(v.count("keep", blackbox.DefaultKeep)),
	}
	dir := v.text("dir")
	if dir == "" {
		dir = defaultCrashes // which may be a link that the bundle has come with
		c.spread = append(c.spread, named{reach: service.ReachWrite, key: "recorder.dir", value: dir, line: max(v.n.Line, 1), column: max(v.n.Column, 1)})
	}
	if r.Dir = m.within(dir); r.Actor > r.Bytes {
		c.At(v.n, "recorder.actor must be at most recorder.bytes: one actor cannot keep more than all")
	}
	return r
}

// config is that of the recorder for package blackbox.
func (r *Recorder) config() blackbox.Config {
	return blackbox.Config{Dir: r.Dir, Bytes: r.Bytes, ActorBytes: r.Actor, Keep: r.Keep}
}

// recorded is the configuration of a system whose turns are kept, if the manifest says so.
func (b *Bundle) recorded(cfg host.Config) (host.Config, error) {
	b.closeRecorder()
	r := b.Manifest.Recorder
	if r == nil || b.noRecorder {
		return cfg, nil
	}
	box := r.config()
	box.Failed = func(path string, err error) { b.log.Error("crash file", "file", path, "error", err) }
	if b.adjustRecorder != nil {
		box = b.adjustRecorder(box)
	}
	x, err := blackbox.Open(box)
	if err != nil {
		return cfg, fmt.Errorf("the recorder: %w", err)
	}
	b.recorder = x
	return cfg.WithBlackBox(x), nil
}

// closeRecorder closes the recorder of a system that has ended.
func (b *Bundle) closeRecorder() {
	if b.recorder != nil {
		b.recorder.Close()
		b.recorder = nil
	}
}
