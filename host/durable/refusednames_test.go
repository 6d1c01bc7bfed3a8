package durable

import (
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/internal/wal/crashfs"
	"github.com/wasmactors/wasmactors/supervision"
)

// A child that cannot be made takes no name from those after it: a start does not try to make it.
func TestNamesAfterARefusal(t *testing.T) {
	props := Props{"p0": role{Name: "p0", Otherwise: supervision.Restart}.props(t)}
	w, err := live(t, crashfs.New(), host.NewVirtualClock(time.Unix(1_700_000_000, 0)), props, false)
	if err != nil {
		t.Fatal(err)
	}
	defer w.end(t)
	spawn := func(options string) cmd { return cmd{Op: "spawn", Path: "./a", Options: options} }
	w.come(happening{What: "tell", Path: "p0", Acts: []act{{Cmds: []cmd{spawn(""), spawn("box"), spawn("")}}}})
	w.rest()
	want := w.look()
	if want["/user/p0/$0"] == "" || want["/user/p0/$1"] == "" || len(want) != 3 {
		t.Error(want)
	}
	fs, clock := w.fs.Copy(), host.NewVirtualClock(w.clock.Now())
	back, err := live(t, fs, clock, props, false)
	if err != nil {
		t.Fatal(err)
	}
	defer back.end(t)
	back.rest()
	for path, is := range back.look() {
		if is != want[path] {
			t.Errorf("%s is\n%s\nand was\n%s", path, is, want[path])
		}
	}
}
