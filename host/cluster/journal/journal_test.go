package journal

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/cluster"
	"github.com/wasmactors/wasmactors/host/cluster/clustertest"
	"github.com/wasmactors/wasmactors/host/cluster/shard"
	"github.com/wasmactors/wasmactors/host/keyed"
	"github.com/wasmactors/wasmactors/host/record"
	"github.com/wasmactors/wasmactors/supervision"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/cockroachdb/pebble/vfs.(*syncingFile).Sync"))
}

// What a member writes into the log of a key has an effect on that key only: it does not begin, and who runs the node is told why.
func TestSpoilt(t *testing.T) {
	late := frame{form: turnForm, epoch: 1 << 40, number: 1}
	other := frame{form: turnForm, epoch: 1, number: 1 << 40, data: []byte("no record of events")}
	for name, spoil := range map[string][]byte{"a byte": {7}, "an epoch that nobody has": late.encode(), "no events": other.encode()} {
		t.Run(name, func(t *testing.T) {
			s := newSim(1, map[string]int{}, broken{})
			defer s.close()
			s.start()
			s.pass(3 * time.Second)
			l := s.running()[0]
			var told []string
			l.journal.opt.Refused = func(text string) { told = append(told, text) }
			store := func(key string) error {
				p, err := l.system.Request(l.region, keyed.For(key, note{Add: 1}))
				if err != nil {
					return err
				}
				s.pass(3 * time.Second)
				select {
				case m := <-p.Answer():
					return m.Err()
				default:
					return errors.New("no answer")
				}
			}
			if err := store("k0"); err != nil {
				t.Fatal(err)
			}
			s.pass(5 * time.Second) // it ends, since it is idle
			fences := s.FencesOf("carts", shard.Of("k0", simShards))
			l.machine.Log().Append("carts", shard.Of("k0", simShards), fences[len(fences)-1].At, "k0", spoil, func(uint64, error) {})
			s.pass(time.Second)
			if err := store("k0"); err == nil {
				t.Error("its key answers")
			}
			if len(told) == 0 || !strings.Contains(told[0], "/user/carts/k0") {
				t.Errorf("told: %q", told)
			}
			if err := store("k1"); err != nil {
				t.Errorf("another key: %v", err)
			}
		})
	}
}

// A fence that no node has written is replaced, and who runs the node is told.
func TestASpoiltFence(t *testing.T) {
	s := newSim(1, map[string]int{}, broken{})
	defer s.close()
	s.start()
	s.pass(3 * time.Second)
	l := s.running()[0]
	told := ""
	l.journal.opt.Refused = func(text string) { told = text }
	for i := range simShards {
		l.machine.Log().Fence("carts", i, []byte("x"), 0, func(uint64, error) {})
	}
	s.pass(time.Second)
	if has, err := s.atLast(l, "k0"); err != nil || len(has) != 0 {
		t.Errorf("%v, %v", has, err)
	}
	if !strings.Contains(told, "it is replaced") {
		t.Errorf("told: %q", told)
	}
}

// Strategies treat what a journal refuses as a matter of one key, and all else as before.
func TestSupervised(t *testing.T) {
	failed := func(kind abi.FailureKind, reason string) *abi.Failure {
		return &abi.Failure{Kind: kind, Reason: reason}
	}
	for _, s := range []supervision.Strategy{supervision.Default(), supervision.Stopping()} {
		x := Supervised(s)
		for reason, want := range map[string]supervision.Directive{
			"the turn could not be recorded: " + ErrMoved.Error():          supervision.Stop,
			"the turn could not be recorded: " + ErrSpoilt.Error() + ": a": supervision.Stop,
			"the turn could not be recorded: " + ErrAnew.Error():           supervision.Restart,
			"the turn could not be recorded: the store has failed":         supervision.Restart,
			"something else": supervision.Escalate,
		} {
			if got := x.Decide("t", failed(abi.FailureHost, reason)); got != want {
				t.Errorf("%s: %v, want %v", reason, got, want)
			}
		}
		if got := x.Decide("t", failed(abi.FailureMemoryLimit, ErrCrowded.Error())); got != supervision.Stop {
			t.Errorf("no room in memory: %v", got)
		}
		for k := abi.FailureKind(1); k < 16; k++ {
			if f := failed(k, "x"); x.Decide("t", f) != s.Decide("t", f) {
				t.Errorf("%v is treated in another way", k)
			}
		}
	}
}

// An actor that is of no kind keeps no events here.
func TestOtherActors(t *testing.T) {
	s := newSim(1, map[string]int{}, broken{})
	defer s.close()
	s.start()
	s.pass(3 * time.Second)
	l := s.running()[0]
	for _, id := range []string{"/user/other/a", "/user/carts", "/user/carts/a/b", "/system/carts/a", "/user/carts/"} {
		if p, _ := l.journal.partOf(id); p != nil {
			t.Errorf("%s is of a kind", id)
		}
	}
}

// replaced is a log of one key, which notes what is put in the place of it.
type replaced struct {
	cluster.Log
	record []byte
	full   bool
}

func (x *replaced) Append(_ string, _ int, _ uint64, _ string, _ []byte, done func(uint64, error)) {
	if x.full {
		done(0, cluster.ErrFull)
	}
}

func (x *replaced) Replace(_, _ string, record []byte, _ uint64, done func(uint64, error)) {
	x.record = record
	done(20, nil)
}

// unreadable is a log that has too much of a key.
type unreadable struct{ replaced }

func (unreadable) Read(_ string, _ int, _ string, _ uint64, done func([]cluster.LogEntry, error)) {
	done(nil, cluster.ErrLong)
}

// A key of which the log has more than may be read does not begin, and who runs the node is told: it is not read again and again.
func TestTooMuchOfAKey(t *testing.T) {
	j, k := keyOf(t, nil)
	j.opt.Log = &unreadable{}
	var told []string
	j.opt.Refused = func(text string) { told = append(told, text) }
	var err error
	k.done = func(e error) { err = e }
	j.read(k, 0)
	if !errors.Is(err, ErrSpoilt) || !errors.Is(err, cluster.ErrLong) || len(told) != 1 || !strings.Contains(told[0], "/user/carts/a") {
		t.Errorf("%v, told %q", err, told)
	}
}

// keyOf is a key with many confirmed records, of which the last has number 5.
func keyOf(t *testing.T, x *replaced) (*Journal, *key) {
	j, err := New(Options{Log: x, Node: 1, Born: 1, Clock: clustertest.New(1).Clock, Manual: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	p := &part{kind: "carts", served: true, epoch: 3, fence: 7, under: 3, number: 5}
	return j, &key{part: p, name: "a", id: "/user/carts/a", fence: 7, last: 10, epoch: 3, number: 5, records: mostRecords + 1}
}

// What an actor has stored while all before it is written anew counts: it may be behind that in the log.
func TestStoredBesideAWhole(t *testing.T) {
	x := &replaced{}
	j, k := keyOf(t, x)
	k.part.number = 6 // its turn has ended, and its record is on the way
	j.renew(k, false)
	if x.record == nil {
		t.Fatal("nothing is written anew")
	}
	next := frame{form: turnForm, epoch: 3, number: 6, data: []byte("next")}
	h, err := j.sort(k, 7, []cluster.LogEntry{{At: 20, Record: x.record}, {At: 21, Record: next.encode()}})
	if err != nil || len(h.records) != 1 || string(h.records[0]) != "next" {
		t.Errorf("the record behind is lost: %q, %v", h.records, err)
	}
}

// A log that is full has a key that is refused written anew: nothing else makes room.
func TestAFullLogMakesRoom(t *testing.T) {
	x := &replaced{full: true}
	j, k := keyOf(t, x)
	k.records = 2
	for _, anew := range []bool{true, false} { // once: then all is needed
		x.record = nil
		turn := &record.Turn{}
		err, there := turn.Ask(func(*record.Turn) {
			k.part.queue, k.part.writing, j.bytes = []*storing{{key: k, record: []byte("r"), turn: turn}}, true, 1
			j.write(k.part)
		}, nil)
		if !there || !errors.Is(err, cluster.ErrFull) || (x.record != nil) != anew || k.records != 1 || j.bytes != 0 || k.broken {
			t.Errorf("%v, %x, %d records, %d bytes", err, x.record, k.records, j.bytes)
		}
	}
}

func FuzzFrame(f *testing.F) {
	f.Add((&frame{form: turnForm, epoch: 7, number: 1 << 40, data: []byte("x")}).encode())
	f.Add((&frame{form: fenceForm, epoch: 7, number: 3, owner: owner{3, 9}}).encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		x, err := decodeFrame(b)
		if err != nil {
			return
		}
		y, err := decodeFrame(x.encode())
		if err != nil || x.form != y.form || x.epoch != y.epoch || x.number != y.number || x.owner != y.owner || !bytes.Equal(x.data, y.data) {
			t.Errorf("%+v became %+v, %v", x, y, err)
		}
	})
}
