package bundle

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestRecorderKeys(t *testing.T) {
	with := func(text string) string { return minimal + "\nrecorder: " + text + "\n" }
	if parse(t, minimal).Recorder != nil {
		t.Error("turns are kept although nothing says so")
	}
	m := parse(t, with("{}"))
	if r := m.Recorder; *r != (Recorder{Dir: filepath.Join(m.Dir, "crashes"), Bytes: 64 << 20, Actor: 256 << 10, Keep: 20}) {
		t.Errorf("%+v", r)
	}
	m = parse(t, with("{dir: x/y, bytes: 2MiB, actor: 8KiB, keep: 3}"))
	if r := m.Recorder; *r != (Recorder{Dir: filepath.Join(m.Dir, "x", "y"), Bytes: 2 << 20, Actor: 8 << 10, Keep: 3}) {
		t.Errorf("%+v", r)
	}
	if cfg := m.Recorder.config(); cfg.Bytes != 2<<20 || cfg.ActorBytes != 8<<10 || cfg.Keep != 3 || cfg.Dir != m.Recorder.Dir {
		t.Errorf("%+v", cfg)
	}
	if p := planOf(parse(t, with("{}")), m); len(p.whole) != 1 || !strings.HasPrefix(p.whole[0], "recorder has changed") {
		t.Error(p.whole)
	}
}
