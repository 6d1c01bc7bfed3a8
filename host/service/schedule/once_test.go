package schedule

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/internal/once"
)

func requestOf(life abi.Ref, number, settled uint64) *once.Request {
	return &once.Request{Life: life, Effect: &host.Effect{Key: [16]byte{byte(life), byte(number), byte(number >> 8)}, Number: number, Settled: settled}}
}

// asked is a request of an actor, as the provider serves it: the name of an entry, "-" before it cancels it, "+" says that it must be new.
func (w *world) asked(path string, r *once.Request, name string) (answer []byte, err error) {
	o := owner{path, 1, 100_000, r}
	if answer := w.again(o); answer != nil {
		return answer, nil
	}
	if name, cancels := strings.CutPrefix(name, "-"); cancels {
		done, err := w.engine.cancel(o, path, name)
		if err != nil {
			return nil, err
		}
		return host.Encode(cancelAnswer{done})
	}
	name, onlyNew := strings.CutPrefix(name, "+")
	e := Entry{Name: name, Cron: "0 * * * *"}
	spec, err := e.spec(epoch)
	if err != nil {
		return nil, err
	}
	x, changed, err := w.engine.set(o, e, spec, onlyNew)
	if err != nil {
		return nil, err
	}
	return host.Encode(setAnswer{changed, w.nextOf(x)})
}

func (w *world) names() (all []string) {
	w.engine.mu.Lock()
	defer w.engine.mu.Unlock()
	for _, x := range w.items.all() {
		all = append(all, x.Name)
	}
	return all
}

// TestEveryCrashOfAChange: wherever the file of entries ends when the process dies, a change that is asked for again is made once, and
// answered as it was. Without its keys it is not.
func TestEveryCrashOfAChange(t *testing.T) {
	steps := []string{"+a", "+b", "-a", "+a", "-b", "-a", "+c", "-c"} // each has an answer that it would not have again
	dir := t.TempDir()
	w := begin(t, dir, nil, nil)
	file := filepath.Join(dir, journalName)
	var answers [][]byte
	var sizes []int
	var names []string
	note := func() {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		sizes, names = append(sizes, len(data)), append(names, fmt.Sprint(w.names()))
	}
	note()
	for i, s := range steps {
		answer, err := w.asked("/user/a", requestOf(7, uint64(i)+1, 1), s)
		if err != nil {
			t.Fatal(s, err)
		}
		answers = append(answers, answer)
		note()
	}
	data, _ := os.ReadFile(file)
	for _, forgetful := range []bool{false, true} {
		wrong, crashes := 0, 0
		for i, s := range steps {
			for cut := sizes[i]; cut <= sizes[i+1]; cut += max(1, (sizes[i+1]-sizes[i])/9) {
				to := t.TempDir()
				if err := os.WriteFile(filepath.Join(to, journalName), data[:cut], 0o600); err != nil {
					t.Fatal(err)
				}
				x := begin(t, to, nil, nil)
				r := requestOf(7, uint64(i)+1, 1)
				if forgetful {
					x.requests = requests{}
				}
				answer, err := x.asked("/user/a", r, s)
				ok := err == nil && bytes.Equal(answer, answers[i]) && fmt.Sprint(x.names()) == names[i+1]
				if crashes++; !ok {
					wrong++
				}
				if !ok && !forgetful {
					t.Errorf("%s, cut at %d: %x %v, entries %v, and not %s", s, cut-sizes[i], answer, err, x.names(), names[i+1])
				}
				_ = x.engine.close()
			}
		}
		if t.Logf("%d crashes, %d wrong (forgetful: %v)", crashes, wrong, forgetful); forgetful && wrong == 0 {
			t.Error("it makes no difference whether keys are kept")
		}
	}
}

// TestKeptChangesAreBounded: what is settled goes, of one life there is not more than a number, an actor that has ended leaves nothing, and
// a file that is written anew has what is kept.
func TestKeptChangesAreBounded(t *testing.T) {
	dir := t.TempDir()
	over := map[string]bool{}
	alive := func(w *world) {
		w.quick = true
		w.engine.alive = func(path string, _ abi.Ref) bool { return !over[path] }
	}
	w := begin(t, dir, nil, nil, alive)
	first, err := w.asked("/user/a", requestOf(7, 1, 1), "+x")
	if err != nil {
		t.Fatal(err)
	}
	for n := uint64(2); n <= once.MostOpen; n++ {
		if _, err := w.asked("/user/a", requestOf(7, n, 1), fmt.Sprint("+x", n)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.asked("/user/a", requestOf(7, once.MostOpen+1, 1), "+y"); service.CodeOf(err) != service.Busy {
		t.Error(err)
	}
	for i := range 5000 { // until the file is written anew
		if _, err := w.asked("/user/b", requestOf(8, uint64(i)+1, uint64(i)+1), []string{"+x", "-x"}[i%2]); err != nil {
			t.Fatal(err)
		}
	}
	if w.requests.n != once.MostOpen+1 {
		t.Errorf("%d are kept", w.requests.n)
	}
	_ = w.engine.close()
	w = begin(t, dir, nil, nil, alive)
	if again, err := w.asked("/user/a", requestOf(7, 1, 1), "+x"); err != nil || !bytes.Equal(again, first) {
		t.Errorf("%x %v", again, err)
	}
	if _, err := w.asked("/user/a", requestOf(9, 1, 1), "+x"); service.CodeOf(err) != service.Exists {
		t.Errorf("of the next life: %v", err)
	}
	for i := range 10_000 { // children that end
		path := fmt.Sprint("/user/c/", i)
		if _, err := w.asked(path, requestOf(abi.Ref(1000+i), 1, 1), "+x"); err != nil {
			t.Fatal(err)
		}
		over[path] = true
		if _, err := w.asked("/user/c", nil, "-x"); err != nil {
			t.Fatal(err)
		}
	}
	if w.requests.n > 2*leastSweep {
		t.Errorf("%d are kept of actors that have ended", w.requests.n)
	}
	n := 0
	for _, x := range w.requests.of {
		n += len(x.list)
	}
	if n != w.requests.n {
		t.Errorf("%d are kept, %d are counted", n, w.requests.n)
	}
	w.clock.Advance(once.Keep + time.Second)
	if _, err := w.asked("/user/a", requestOf(7, 2000, 1), "+late"); err != nil || len(w.requests.of["/user/a"].list) != 1 {
		t.Errorf("%v, %d are kept", err, len(w.requests.of["/user/a"].list))
	}
}

// TestForgedRequests: a record with what no change has written is refused.
func TestForgedRequests(t *testing.T) {
	good := func() *record {
		k, err := keptOf("/user/a", requestOf(7, 2, 1), 5, cancelAnswer{true})
		if err != nil {
			t.Fatal(err)
		}
		return &record{Kind: wasKept, Request: k}
	}
	if _, err := decodeRecord(good().encode()); err != nil {
		t.Fatal(err)
	}
	for i, change := range []func(*record){
		func(r *record) { r.Request = nil }, func(r *record) { r.Name = "x" }, func(r *record) { r.DoneTo = 1 },
		func(r *record) { r.Request.Life = 0 }, func(r *record) { r.Request.Number = 0 }, func(r *record) { r.Request.Settled = 3 },
		func(r *record) { r.Request.Path = "/system/x" }, func(r *record) { r.Request.Kept = nil },
		func(r *record) { r.Request.Kept = append(r.Request.Kept, make([]byte, 300)...) }, func(r *record) { r.Kind++ },
	} {
		r := good()
		change(r)
		if _, err := decodeRecord(r.encode()); err == nil {
			t.Errorf("forgery %d is taken", i)
		}
	}
}
