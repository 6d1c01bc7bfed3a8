package rerun

import (
	"bytes"
	"encoding/base64"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/recorder"
	"github.com/wasmactors/wasmactors/internal/redact"
	"github.com/wasmactors/wasmactors/runtime"
	"github.com/wasmactors/wasmactors/supervision"
)

// Guests that are handed a known secret are repeated with a mask of the same length, which is said, and no difference. Who hears of
// it from them is exact as long as the secret itself does not come along. The secret is in no file, however many begin.
func TestMaskedGuestsRepeat(t *testing.T) {
	const secret = "correct horse battery staple"
	trapping := rec(0, trap, send("/user/sink", text("what nothing else sends")))
	w := newWorld(t, setting{workers: 3, bytes: recorder.MinBytes})
	if err := w.Redaction().Hide([]byte(secret), trapping); err != nil {
		t.Fatal(err)
	}
	tell := func(name string, m host.Raw) {
		t.Helper()
		ref, err := w.Lookup("/user/" + name)
		if err == nil {
			err = w.Tell(ref, m)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	add := script(rec(recAdd, 1))
	tell("b", script(rec(recAdd, 1)))
	// b passes the secret on to c, which keeps it in its memory, for stops; and something else to soft/q.
	tell("b", script(rec(recAdd, 2), rec(0, 0, send("/user/c", script(rec(8, 0, send("/user/sink", text(secret))))), send("/user/soft/q", add))))
	tell("a", script(rec(recAdd, 5), trapping)) // with the mask it does not fail
	check := func(name string, r *recorder.Recording, masked bool) {
		t.Helper()
		for _, e := range [...]string{"compiled", "interpreted"} {
			engine := compiled(t)
			if e == "interpreted" {
				engine = interpreted(t)
			}
			report := equal(t, engine, r, Options{})
			all := ""
			for _, x := range report.Inexact {
				all += x.Path + " " + x.Why + "\n"
			}
			for _, path := range []string{"/user/a ", "/user/b ", "/user/c "} {
				if masked != strings.Contains(all, path+"from turn ") {
					t.Errorf("%s, %s: %q in\n%s", name, e, path, all)
				}
			}
			for _, path := range []string{"soft/q", "soft/w", "boss", "worker"} {
				if strings.Contains(all, path) {
					t.Errorf("%s, %s: %s is not exact", name, e, path)
				}
			}
			if masked != (report.Unlike > 0) || report.Turns < 20 {
				t.Errorf("%s, %s: %s, %d are left out", name, e, describe(report), report.Unlike)
			}
			t.Log(name, e, describe(report), report.Unlike, "left out", report.Inexact, report.NotRecorded)
		}
	}
	for n := range uint64(60) {
		w.load(n, 40)
		w.r.Flush()
		if _, err := os.Stat(w.path + recorder.Old); err == nil {
			break
		}
	}
	w.load(99, 20)
	last := w.end()
	before := read(t, w.path+recorder.Old)
	check("the file before", before, true)
	check("the last file", last, false)
	set, err := (*redact.Set)(nil).With([]byte(secret), trapping)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{w.path, w.path + recorder.Old} {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(set.Mask(b), b) || bytes.Contains(b, []byte(base64.StdEncoding.EncodeToString([]byte(secret)))) {
			t.Errorf("a secret is in %s", name)
		}
	}
	if d, err := Diff(t.Context(), compiled(t), before, before, Options{Modules: modules(t)}); err != nil || d.First != nil || len(d.NotCompared) < 3 {
		t.Errorf("%v, %+v", err, d)
	}
}

// What an exact guest sends to one whose turns are left out is not kept: its bytes are free as soon as the record that would have
// handed it out is passed.
func TestMessagesToWhatIsLeftOutAreNotKept(t *testing.T) {
	const rounds, each = 40, 20
	trapping := rec(0, trap, send("/user/sink", text("what nothing else sends")))
	w := newBareWorld(t, setting{config: host.Config.WithManual}) // one lane: its records are passed in the order of time
	if err := w.Redaction().Hide(trapping); err != nil {
		t.Fatal(err)
	}
	image := load(t, "puppet", modules(t)[0], runtime.ImageConfig{})
	puppet := host.Guest(image, "puppet").WithCapabilities(host.Capabilities{Send: []string{"/**"}})
	w.spawn("exact", puppet)
	w.spawn("soft", host.Func(func(*host.Context, host.Message) error { return nil }).
		WithSupervision(supervision.Default().WithOtherwise(supervision.Resume).WithMaxRestarts(-1, 0)).
		WithChildren(host.Child{Name: "q", Props: puppet}))
	tell := func(path string, m host.Raw) {
		t.Helper()
		err := w.Idle(t.Context())
		if ref, missing := w.Lookup(path); err == nil && missing == nil {
			err = w.Tell(ref, m)
		} else {
			err = errors.Join(err, missing)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	tell("/user/soft/q", script(rec(recAdd, 1), trapping)) // with the mask it does not fail; it is resumed
	one := send("/user/soft/q", script(rec(recAdd, 1)))
	many := script(rec(0, 0, bytes.Repeat(one, each)))
	for range rounds {
		tell("/user/exact", many)
	}
	if err := w.Idle(t.Context()); err != nil {
		t.Fatal(err)
	}
	r := w.end()
	report := equal(t, compiled(t), r, Options{kept: 2 * each * int64(len(one))})
	if len(report.Inexact) != 1 || !strings.HasSuffix(report.Inexact[0].Path, "/user/soft/q") {
		t.Errorf("not exact: %v", report.Inexact)
	}
	if report.Unlike < rounds*each || report.Turns < rounds {
		t.Errorf("%s, %d are left out", describe(report), report.Unlike)
	}
	p, err := planOf(t.Context(), r, "")
	if err != nil {
		t.Fatal(err)
	}
	again := newRun(t.Context(), r, p, Options{Modules: modules(t)})
	defer again.close()
	if err := errors.Join(again.load(compiled(t)), again.forward(t.Context(), 0)); err != nil {
		t.Fatal(err)
	}
	if len(again.kept) > 0 || again.bytes != 0 {
		t.Errorf("%d entries with %d bytes are kept at the end", len(again.kept), again.bytes)
	}
}
