package host

import (
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/account"
	"github.com/wasmactors/wasmactors/host/internal/signal"
	"github.com/wasmactors/wasmactors/host/internal/stash"
	"github.com/wasmactors/wasmactors/internal/mailbox"
	"github.com/wasmactors/wasmactors/internal/printable"
)

// watchRef watches an actor, which may have ended already. path is
// the target's as far as the watcher knows it.
func (a *actor) watchRef(scr *scratch, uid abi.Ref, path string) error {
	if entered, err := a.enterWatch(uid, path); !entered {
		return err
	}
	if !a.sys.signal(scr, uid, signal.Signal{Kind: signal.Watch, From: a.uid}) {
		a.strayed(scr, uid)
	}
	return nil
}

// enterWatch notes a watch, of which the watched actor is not told yet; false if there is nothing to be told.
func (a *actor) enterWatch(uid abi.Ref, path string) (bool, error) {
	if uid == a.uid || a.watch.Watching(uid) {
		return false, nil
	}
	if a.watch.Len() >= a.props.limits.Watches {
		return false, ErrLimit
	}
	if err := a.hold(account.Watches, a.account.Of(account.Watches)+watchBytes+int64(len(path))); err != nil {
		return false, err
	}
	a.watch.Watch(uid, path)
	return true, nil
}

// unwatchRef ends a watch; a notification in the mailbox is dropped when its turn
// comes.
func (a *actor) unwatchRef(scr *scratch, uid abi.Ref) {
	if !a.watch.Unwatch(uid) {
		return
	}
	a.noteWatches()
	a.sys.signal(scr, uid, signal.Signal{Kind: signal.Unwatch, From: a.uid})
}

// watchedEnded puts the news at the end of the actor's own mailbox: after everything that the
// dead actor had sent before.
func (a *actor) watchedEnded(scr *scratch, uid abi.Ref, reason string) {
	if !a.watch.Watching(uid) {
		return
	}
	e := scr.newEnvelope()
	e.Kind, e.Sender = abi.KindTerminated, uid
	if path := a.watch.Path(uid); path != "" {
		e.Value = endedPath(path)
	}
	e.Payload = appendText(e.Payload, reason)
	a.insist(scr, e)
}

// endedPath is the path of the actor whose end an envelope reports.
type endedPath string

// pathOfEnded is empty if it is not known.
func pathOfEnded(e *mailbox.Envelope) string {
	switch v := e.Value.(type) {
	case endedPath:
		return string(v)
	case stash.Stashed:
		return v.Path
	}
	return ""
}

// maxNews bounds texts that the host itself puts into envelopes, in bytes.
const maxNews = 512

func appendText(dst []byte, s string) []byte {
	w := abi.NewWriter(dst)
	w.Text(printable.Clip(s, maxNews))
	return w.Bytes()
}
