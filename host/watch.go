package host

import (
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// watch asks to be told of an actor's end; one that has ended already counts.
// path is the target's as far as the watcher knows it.
func (c *cell) watch(scr *scratch, uid abi.Ref, path string) error {
	if _, ok := c.watching[uid]; ok || uid == c.uid {
		return nil
	}
	if len(c.watching) >= c.limits.Watches {
		return ErrLimit
	}
	if c.watching == nil {
		c.watching = map[abi.Ref]string{}
	}
	c.watching[uid] = path
	target := c.sys.table.get(uid)
	if target == nil || !target.post(scr, sysMsg{kind: sysWatch, ref: c.uid}) {
		c.post(scr, sysMsg{kind: sysTerminated, ref: uid, reason: "unknown"})
	}
	return nil
}

// unwatch takes a watch back; a notification in the mailbox is dropped when its
// turn comes.
func (c *cell) unwatch(scr *scratch, uid abi.Ref) {
	if _, ok := c.watching[uid]; !ok {
		return
	}
	delete(c.watching, uid)
	if target := c.sys.table.get(uid); target != nil {
		target.post(scr, sysMsg{kind: sysUnwatch, ref: c.uid})
	}
}

// watchedEnded puts the news at the end of the own mailbox: behind everything
// that the dead actor had sent before.
func (c *cell) watchedEnded(scr *scratch, uid abi.Ref, reason string) {
	path, ok := c.watching[uid]
	if !ok {
		return
	}
	e := scr.cache.New()
	e.Kind, e.Sender = abi.KindTerminated, uid
	if path != "" {
		e.Value = path
	}
	e.Payload = appendText(e.Payload, reason)
	if c.keep > 0 || c.mbox.Push(e) != nil { // what is kept during a delay are messages
		c.late = append(c.late, e) // bounded by the number of watches
	}
}

// notifyEnd tells a watcher that an actor has gone.
func (s *System) notifyEnd(scr *scratch, watcher, uid abi.Ref, reason string) {
	if w := s.table.get(watcher); w != nil {
		w.post(scr, sysMsg{kind: sysTerminated, ref: uid, reason: reason})
		return
	}
	s.asks.end(watcher, uid, reason)
}

// endedPath is whose end an envelope tells of, empty if it is not known.
func endedPath(e *mailbox.Envelope) string {
	switch v := e.Value.(type) {
	case string:
		return v
	case settled:
		return v.path
	}
	return ""
}

// maxNews bounds texts that the host itself puts into envelopes, in bytes.
const maxNews = 512

func appendText(dst []byte, s string) []byte {
	w := abi.NewWriter(dst)
	w.Text(clip(s, maxNews))
	return w.Bytes()
}
