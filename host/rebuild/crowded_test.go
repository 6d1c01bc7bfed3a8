package rebuild

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/internal/rebuild"
	"github.com/wasmactors/wasmactors/host/record"
	"github.com/wasmactors/wasmactors/supervision"
)

// In logs of earlier releases nothing says that an actor has failed because its mailbox was full of refusals, but that its parent was told.
func TestLogsOfWhoWasFullOfRefusals(t *testing.T) {
	var asks []byte
	for i := range uint64(3) { // which are refused
		asks = abi.AppendAsk(asks, 0, "nobody*", i+1, uint64(time.Second), nil, text("q"))
	}
	a := puppet(puppetImage(t), rec(byte(abi.KindReplyError), 2, asks)).WithLimits(host.Limits{Mailbox: 3})
	props := map[string]host.Props{"parent": puppet(puppetImage(t)).WithDurable().
		WithSupervision(supervision.Default().WithOtherwise(supervision.Suspend)).WithChildren(host.Child{Name: "a", Props: a})}
	w := rebuiltAt(t, props, time.Unix(1_700_000_000, 0), nil, nil)
	w.r.Release()
	if _, err := w.Spawn("parent", props["parent"]); err != nil {
		t.Fatal(err)
	}
	w.RunUntilIdle(1 << 20)
	ref, err := w.Lookup("/user/parent/a")
	if err == nil {
		err = w.Tell(ref, script(rec(0, 2, asks)))
	}
	if err != nil {
		t.Fatal(err)
	}
	w.RunUntilIdle(1 << 20)
	all := w.j.read(0, len(w.j.log))
	old := slices.DeleteFunc(slices.Clone(all), func(r record.Record) bool { return r.Kind == record.Took && r.Signal.What == "crash" })
	if len(old) != len(all)-1 {
		t.Fatalf("%d of %d records say that it has failed%s", len(all)-len(old), len(all), show(all))
	}
	x := rebuiltAt(t, props, time.Unix(1_700_000_000, 0), nil, old)
	x.r.Release()
	x.RunUntilIdle(1 << 20)
	if s := rebuild.Look(x.System, ref.UID()); s == nil || s.Life != "failed" || !strings.Contains(s.Rest, "full of what was refused") {
		t.Errorf("%+v", s)
	}
	x.end()
	w.end()
}
