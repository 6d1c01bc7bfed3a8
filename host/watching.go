package host

import (
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/signal"
)

// watchRef watches an actor, which may have ended already. path is
// the target's as far as the watcher knows it.
func (a *actor) watchRef(scr *scratch, uid abi.Ref, path string) error {
	if uid == a.uid {
		return nil
	}
	if entered, err := a.work.AddWatch(a, uid, path); !entered {
		return err
	}
	if !a.sys.signal(scr, uid, signal.Signal{Kind: signal.Watch, From: a.uid}) {
		a.strayed(scr, uid)
	}
	return nil
}

// unwatchRef ends a watch; a notification in the mailbox is dropped when its turn
// comes.
func (a *actor) unwatchRef(scr *scratch, uid abi.Ref) {
	if !a.work.DropWatch(a, uid) {
		return
	}
	a.sys.signal(scr, uid, signal.Signal{Kind: signal.Unwatch, From: a.uid})
}
