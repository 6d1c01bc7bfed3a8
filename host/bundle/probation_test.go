package bundle

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host/upgrade"
	"github.com/wasmactors/wasmactors/internal/thorough"
)

// onProbation is a bundle whose actors have gone over to tally2, and are on probation. It ends with the test.
func onProbation(t *testing.T, lasts time.Duration, checkpoint bool) *keeping {
	t.Helper()
	k := startKeeping(t, t.TempDir(), "tally1")
	for _, name := range []string{"a", "b", "c"} {
		k.ask(name)
	}
	c, err := k.b.PrepareModule(context.Background(), "m", tallyOf(t, "tally2"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	waits, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		_, _ = c.Upgrade(ctx, k.sys, upgrade.Options{Probation: lasts, Wait: func(ctx context.Context, _ time.Duration) {
			close(waits)
			<-ctx.Done()
		}}, nil)
	}()
	t.Cleanup(func() {
		cancel()
		<-over
		k.end()
	})
	<-waits
	if checkpoint {
		if err := k.b.Store().Checkpoint(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	for k.b.Store().Waits() {
		time.Sleep(time.Millisecond)
	}
	return k
}

// traps has an actor crash if it runs tally2.
func (k *keeping) traps(name string) {
	k.t.Helper()
	ref, err := k.sys.Lookup("/user/" + name)
	if err == nil {
		err = k.sys.Tell(ref, 9)
	}
	if err != nil {
		k.t.Fatal(err)
	}
}

// A bundle whose process is killed while the actors of an upgrade are on probation goes on with it, whatever code of the two the manifest names,
// and does not change until it is over.
func TestProbationOfABundle(t *testing.T) {
	for _, checkpoint := range []bool{false, true} {
		k := onProbation(t, time.Minute, checkpoint)
		for _, module := range []string{"tally2", "tally1"} {
			k := startKeeping(t, k.killed(), module)
			if _, err := k.b.PrepareModule(context.Background(), "m", tallyOf(t, "tally2"), Options{}); !errors.Is(err, ErrProbation) {
				t.Error(module, err)
			}
			k.traps("b")
			<-k.b.probation.done
			if a, b := k.ask("a"), k.ask("b"); a != 102 || b < 102 || b > 199 {
				t.Errorf("%s: %d %d", module, a, b)
			}
			if said := k.log.String(); !strings.Contains(said, "an upgrade was rolled back") {
				t.Error(module, said)
			}
			c, err := k.b.PrepareModule(context.Background(), "m", tallyOf(t, "tally2"), Options{})
			if err != nil || c.Empty() || k.b.Hash("m") != hashOf(tallyOf(t, "tally1")) {
				t.Error(module, err, k.b.Hash("m"))
			}
			c.Discard()
			if err := k.b.Store().Checkpoint(context.Background()); err != nil {
				t.Error(err)
			} else if n := k.files(); n != 1 {
				t.Errorf("%s: the store has %d modules", module, n)
			}
			k.end()
			if k = startKeeping(t, k.dir, module); k.b.Store().Probation() != nil {
				t.Error(module, "it is over, and goes on")
			}
			k.end()
		}
	}
}

// Without a crash the new code stays, also where the process has ended in order meanwhile. Where the manifest names a third code the
// actors are upgraded to that, and nothing goes back.
func TestProbationOfABundleEnds(t *testing.T) {
	var on *keeping
	for _, module := range thorough.SlowOf([]string{"tally2"}, []string{"tally2", "tally1"}) {
		on = onProbation(t, 10*time.Second, false)
		k := startKeeping(t, on.killed(), module)
		if k.end(); k.b.Store() != nil {
			t.Fatal("it has not ended")
		}
		k = startKeeping(t, k.dir, module)
		if k.b.probation == nil {
			t.Fatal(module, "it has ended with the process")
		}
		<-k.b.probation.done
		if a, b := k.ask("a"), k.ask("b"); a != 202 || b != 202 {
			t.Errorf("%s: %d %d", module, a, b)
		}
		if c, err := k.b.PrepareModule(context.Background(), "m", tallyOf(t, "tally2"), Options{}); err != nil || !c.Empty() {
			t.Error(module, err)
		}
		if err := k.b.Store().Checkpoint(context.Background()); err != nil {
			t.Error(err)
		} else if n := k.files(); n != 1 {
			t.Errorf("%s: the store has %d modules", module, n)
		}
		k.traps("b")
		if b := k.ask("b"); b != 201 {
			t.Errorf("%s: b has gone back after the end: %d", module, b)
		}
		k.end()
	}
	k := startKeeping(t, on.killed(), "save-trap")
	if k.b.probation != nil || k.b.Store().Probation() != nil || !strings.Contains(k.log.String(), "the probation of an upgrade ends here") {
		t.Error(k.log.String())
	}
	if a := k.ask("a"); a != 203-1 {
		t.Error(a)
	}
	k.end()
}
