package host

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
)

// A dead letter to a relative path is one to the path that it led to when it was sent: it is shown
// there, and delivered there again.
func TestRedeliverToRelativePaths(t *testing.T) { everyManner(t, redeliverToRelativePaths) }

func redeliverToRelativePaths(t *testing.T) {
	for _, v := range []struct {
		path, at string // where the letter is to; empty: nobody's
	}{
		{"./kid", "/user/x/kid"}, {"../beside", "/user/beside"}, {"../x/kid", "/user/x/kid"}, {"../../user/beside", "/user/beside"},
		{"/user/beside", "/user/beside"},
		{"./kid#7", ""}, {"../beside#9", ""}, {"../../../user/beside", ""}, {"./../beside", ""}, {"kid", ""}, {"../bes*", ""},
	} {
		l := newStage(t, nil)
		guest := l.spawn("x", puppet(t))
		l.run()
		_ = l.Tell(guest, script(now(
			abi.AppendSend(nil, 0, v.path, 0, 0, nil, []byte{0xf5}),
			abi.AppendAsk(nil, 0, v.path, 3, uint64(time.Second), nil, []byte{0xf5}),
			abi.AppendForward(nil, 0, v.path))))
		l.run()
		gone := l.spawn("", Func(func(ctx *Context, m Message) error { return ctx.At(v.path).Tell(true) }))
		_ = l.Tell(gone, 1)
		l.run()
		letters, _ := l.DeadLetters()
		if len(letters) != 4 {
			t.Fatalf("%s: %d letters: %+v", v.path, len(letters), letters)
		}
		want := v.at
		heard := 0
		listen := Func(func(*Context, Message) error { heard++; return nil })
		l.spawn("beside", listen)
		_ = l.Tell(guest, script(now(abi.AppendStop(nil, guest.UID(), ""))))
		l.run()
		l.spawn("x", Func(func(*Context, Message) error { return nil }).WithChildren(Child{"kid", listen}))
		l.run()
		for i, d := range letters {
			if i == 3 { // it was beside x, and had the same brothers, but no kid there
				want = strings.Replace(v.at, "/user/x/", gone.Path()+"/", 1)
				if strings.HasPrefix(v.path, "../x/") {
					want = v.at
				}
			}
			shown := want
			if shown == "" {
				shown = v.path
				if strings.Contains(v.path, "*") {
					shown = "/user/bes*"
				}
			}
			if strings.TrimPrefix(d.Path, "wasm://test") != strings.TrimPrefix(shown, "wasm://test") {
				t.Errorf("%s: letter %d is to %q, want %q", v.path, i, d.Path, shown)
			}
			there := want != "" && !strings.HasPrefix(want, gone.Path())
			can := l.Operate().CanRedeliver(d.ID)
			to, err := l.Operate().Redeliver(d.ID)
			if there && (can != nil || err != nil || !strings.HasSuffix(to.Path(), want)) || !there && (!errors.Is(can, ErrUnknown) || !errors.Is(err, ErrUnknown)) {
				t.Errorf("%s: letter %d: %v, %v, %v", v.path, i, can, to, err)
			}
			before := heard
			l.run()
			if (heard > before) != there {
				t.Errorf("%s: letter %d was heard: %v", v.path, i, heard > before)
			}
		}
	}
}

// What is handed on to a path that names nobody is a dead letter of the message, in the name of
// who has sent it, and who asks hears of it at once. It is not told whether the path was denied.
func TestForwardsToNobodyAreWhole(t *testing.T) { everyManner(t, forwardsToNobodyAreWhole) }

func forwardsToNobodyAreWhole(t *testing.T) {
	for _, path := range []string{"/user/none", "/user/none*", "../none", "./none", "not a path", "/system/none"} {
		l := newStage(t, nil)
		middle := l.spawn("x", puppet(t).WithCapabilities(Capabilities{Send: []string{"/user/**"}}))
		l.run()
		in := l.Inbox(0)
		order := script(now(abi.AppendForward(nil, 0, path)))
		headed := Headed{Value: order, Headers: map[string]string{"k": "v"}}
		if err := in.Ask(middle, headed, 9); err != nil {
			t.Fatal(err)
		}
		l.run()
		m, ok := in.TryReceive()
		if !ok || m.Kind != abi.KindReplyError || m.Correlation != 9 || !strings.Contains(describe(m), "a path without an actor, or to one that the actor may not send to") {
			t.Errorf("%s: %v %+v", path, ok, m)
		}
		letters, _ := l.DeadLetters()
		if len(letters) != 1 || letters[0].Sender != in.Ref().UID() || !slices.Equal(letters[0].Payload, order) {
			t.Fatalf("%s: %+v", path, letters)
		}
		in.Close()
		l.run()
	}
}

// A letter of what was not a message is not delivered as one: of a watch, an order to stop, a question
// of who is there, a timer.
func TestOrdersAreNotRedelivered(t *testing.T) { everyManner(t, ordersAreNotRedelivered) }

func ordersAreNotRedelivered(t *testing.T) {
	l := newStage(t, nil)
	guest := l.spawn("x", puppet(t).WithLimits(Limits{Watches: 1, Timers: 1}))
	l.run()
	_ = l.Tell(guest, script(now(
		abi.AppendWatch(nil, 0, "/user/y"), abi.AppendUnwatch(nil, 0, "../y"), abi.AppendStop(nil, 0, "/user/y"), abi.AppendWatch(nil, 0, "/user/y*"), abi.AppendWatch(nil, 0, "+/user/y#3"),
		abi.AppendAsk(nil, 0, abi.IdentifySign+"/user/y", 3, uint64(time.Second), nil, nil),
		abi.AppendAsk(nil, 0, abi.IdentifySign+"no path*", 4, uint64(time.Second), nil, nil),
		abi.AppendWatch(nil, l.probe.UID(), ""), abi.AppendTimer(nil, 1, uint64(time.Hour), 0, []byte{0xf5}), abi.AppendTimer(nil, 2, uint64(time.Hour), 0, []byte{0xf5}),
	)))
	l.run()
	y := l.spawn("y", Func(func(*Context, Message) error { t.Error("it was sent something"); return nil }))
	_ = l.Tell(guest, script(now(abi.AppendWatch(nil, y.UID(), ""), abi.AppendWatch(nil, 0, "/user/?"))))
	l.run()
	letters, _ := l.DeadLetters()
	if len(letters) < 9 {
		t.Fatalf("%d letters: %+v", len(letters), letters)
	}
	for _, d := range letters {
		can := l.Operate().CanRedeliver(d.ID)
		if _, err := l.Operate().Redeliver(d.ID); !errors.Is(err, ErrNotKept) || !errors.Is(can, ErrNotKept) || !strings.Contains(err.Error(), "not a message") {
			t.Errorf("%+v: %v, %v", d, can, err)
		}
	}
	l.run()
}
