package host

import (
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/account"
	"github.com/wasmactors/wasmactors/host/internal/asks"
	"github.com/wasmactors/wasmactors/host/internal/signal"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// addAsk notes an ask of the actor's own, before it is sent to target (0: not yet known).
func (a *actor) addAsk(scr *scratch, correlation uint64, target abi.Ref, timeout time.Duration) (*asks.Ask, error) {
	if correlation == 0 || a.asks.Get(correlation) != nil || a.asks.Len() >= a.props.limits.Asks {
		return nil, ErrLimit
	}
	trace := scr.keep()
	if err := a.hold(account.Asks, a.account.Of(account.Asks)+askBytes+int64(len(trace))); err != nil {
		return nil, err
	}
	ask := &asks.Ask{Target: target, Due: a.TurnTime().Add(timeout), Trace: trace}
	ask.Add(target)
	a.asks.Add(correlation, ask, a.alarms.After(a.Clock(), ask.Due.Sub(a.Now()), func() {
		e := mailbox.New()
		e.Kind, e.Correlation, e.Value = abi.KindAskTimeout, correlation, ask
		e.SetPayload(nullPayload)
		e.SetHeaders(ask.Trace)
		a.insist(nil, e)
	}))
	return ask, nil
}

// dropAsk ends an ask: it was answered, its time is over, or no answer can come.
func (a *actor) dropAsk(scr *scratch, correlation uint64) {
	for _, who := range a.asks.Remove(correlation) {
		a.sys.abandoned(scr, who)
	}
	a.noteAsks()
}

func (a *actor) dropAsks(scr *scratch) {
	for _, who := range a.asks.RemoveAll() {
		a.sys.abandoned(scr, who)
	}
	a.noteAsks()
}

// noAnswer tells the actor itself that there will be no answer to an ask: its turn has
// failed, or it was not delivered. The actor gets this in place of the answer.
func (a *actor) noAnswer(scr *scratch, m *signal.Signal) {
	ask := a.asks.Get(m.Correlation)
	if ask == nil || m.From != 0 && ask.Target != 0 && !ask.Has(m.From) {
		return
	}
	e := hostReply(scr, m.From, m.Correlation, m.Text())
	e.SetHeaders(ask.Trace)
	a.insist(scr, e)
}
