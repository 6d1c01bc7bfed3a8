package rebuild

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/record"
	"github.com/wasmactors/wasmactors/supervision"
)

// What workers have done at the same time is rebuilt, too, by workers and step by step: messages from many senders, batches
// that system messages have ended, failures and restarts.
func TestRebuiltFromWhatWorkersDid(t *testing.T) {
	const actors, each = 12, 40
	puppets := puppetImage(t)
	props := func(l *record.Life) (*host.Props, error) {
		p := puppet(puppets)
		if strings.HasSuffix(l.Path, "/go") {
			p = host.Func(func(ctx *host.Context, m host.Message) error {
				if m.Kind == abi.KindMessage && m.Payload[0] == 1 {
					return ctx.Tell(m.Sender, script(rec(recAdd, 1)))
				}
				return nil
			})
		}
		return &p, nil
	}
	config := func(j *journal) host.Config {
		return host.NewConfig("w").WithSeed(5).WithRecorder(j).WithWorkers(4).WithGuardian(supervision.Default().WithOtherwise(supervision.Restart))
	}
	j := newJournal(host.RealClock(), time.Millisecond)
	s, err := host.New(config(j))
	if err != nil {
		t.Fatal(err)
	}
	spawn := func(name string) host.Ref {
		p, _ := props(&record.Life{Path: "wasm://w/user/" + name})
		ref, err := s.Spawn(name, *p)
		if err != nil {
			t.Fatal(err)
		}
		return ref
	}
	spawn("go")
	refs := make([]host.Ref, actors)
	for i := range refs {
		refs[i] = spawn(fmt.Sprint("a", i))
	}
	var all sync.WaitGroup
	for i := range actors {
		all.Go(func() {
			for n := range each {
				next, flag := fmt.Sprint("/user/a", (i+n)%actors), byte(0)
				if n == each/2 {
					flag = trap
				}
				m := script(rec(recAdd, 1), rec(0, flag, send(next, script(rec(recAdd, 1))), send("/user/go", []byte{1})))
				if err := s.Tell(refs[i], m); err != nil {
					t.Error(err)
				}
				if n%8 == 7 { // system messages end batches
					_, _ = s.View().Inspect(context.Background(), refs[(i+1)%actors])
					s.Operate().ResetBackoff(refs[i])
				}
			}
		})
	}
	all.Wait()
	for range 3 { // until everything is handled
		for _, ref := range refs {
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			if _, err := s.Ask(ctx, ref, script(rec(recReport, 0))); err != nil {
				t.Error(err)
			}
			cancel()
		}
	}
	if err := s.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	log := len(j.log)
	ended := map[record.Ending]int{}
	for i, step := log, 0; step < 8; i, step = i*4/5, step+1 {
		records, err := j.read(i)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range records {
			if step == 0 && r.Entry != nil && len(r.Entry.Mail) > 1 {
				ended[r.Entry.Ended]++
			}
		}
		again := newJournal(host.RealClock(), time.Millisecond)
		cfg := config(again)
		if step%2 == 1 {
			cfg = cfg.WithManual().WithClock(host.NewVirtualClock(time.Now()))
		}
		again.closed = true // it answers at once
		r, err := Prepare(cfg, records, props)
		if err != nil {
			t.Fatalf("%d of %d records: %v%s", i, log, err, show(records[max(0, i-5):]))
		}
		r.Release()
		if err := r.System().Close(context.Background()); err != nil {
			t.Error(err)
		}
	}
	t.Logf("%d records, batches by their ends: %v", log, ended)
}

// Messages that are larger than the inbox are in the records, and the guest fetches them again when its turns are repeated.
func TestRebuiltFromLargeMessages(t *testing.T) {
	code, err := os.ReadFile(filepath.Join("..", "testdata", "large.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	image := load(t, "large", code)
	props := func(*record.Life) (*host.Props, error) {
		p := host.Guest(image, "large")
		return &p, nil
	}
	config := func(j *journal) host.Config {
		return host.NewConfig("w").WithSeed(5).WithRecorder(j).WithGuardian(supervision.Default().WithOtherwise(supervision.Restart))
	}
	j := newJournal(host.RealClock(), time.Millisecond)
	s, err := host.New(config(j))
	if err != nil {
		t.Fatal(err)
	}
	p, _ := props(nil)
	ref, err := s.Spawn("large", *p)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(s *host.System, ref host.Ref, op byte, n int) ([]byte, error) {
		large := append(host.Raw{0x5a, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}, make([]byte, n)...)
		large[5] = op
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		m, err := s.Ask(ctx, ref, host.Bound{Value: large})
		return m.Payload, err
	}
	for i, op := range []byte("epete") {
		if _, err := ask(s, ref, op, 70_000+i*50_000); (err != nil) != (op == 't') {
			t.Fatalf("%c: %v", op, err)
		}
	}
	if err := s.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	// The system as it was before the end.
	for end := len(j.log); end > 0; end /= 2 {
		records, err := j.read(end)
		if err != nil {
			t.Fatal(err)
		}
		again := newJournal(host.RealClock(), time.Millisecond)
		again.closed = true // it answers at once
		r, err := Prepare(config(again), records, props)
		if err != nil {
			t.Fatalf("%d records: %v%s", end, err, show(records))
		}
		r.Release()
		if err := r.System().Close(context.Background()); err != nil {
			t.Error(err)
		}
	}
}
