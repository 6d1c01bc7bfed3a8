package upgrade

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/swap"
	"github.com/wasmactors/wasmactors/internal/sandbox"
)

// Difference is where the old code would have sent something else than what has left.
type Difference struct {
	Turn      uint64 // of the actor
	Sent, Old string // commands, shortened
}

func (d *Difference) Error() string {
	return fmt.Sprintf("the old code would have done something else in turn %d: %s; the new code has done %s", d.Turn, d.Old, d.Sent)
}

// repeat brings a state to where it is after the entries, which have no effect. compared says that they must come out as
// they did; the error is a *Difference if not.
func repeat(t *swap.Taken, image *sandbox.Image, state *sandbox.Snapshot, entries []swap.Entry, compared bool) (*sandbox.Snapshot, error) {
	x, err := sandbox.GetSaved(image, state.Clone())
	if err != nil {
		return nil, err
	}
	defer x.Put()
	entry := *entryOf(t)
	for i := range entries {
		e := &entries[i]
		sent := commands(e.Outbox)
		for j := range e.Mail {
			entry.Now, entry.FirstTurn = e.Now, e.First+uint64(j)
			if e.Mail[j].Kind == abi.KindStart {
				return nil, fmt.Errorf("it has been restarted since")
			}
			if _, _, err := swap.Turn(x, &entry, &e.Mail[j]); err != nil {
				if !compared {
					return nil, err
				}
				return nil, &Difference{entry.FirstTurn, text(sent), err.Error()}
			}
			for _, c := range commands(x.Outbox(1)) {
				if len(sent) == 0 || !bytes.Equal(sent[0], c) {
					return nil, &Difference{entry.FirstTurn, text(sent), text(commands(x.Outbox(1)))}
				}
				sent = sent[1:]
			}
		}
		if len(sent) > 0 {
			return nil, &Difference{e.First + uint64(max(1, len(e.Mail))) - 1, text(sent), "nothing"}
		}
	}
	s := &sandbox.Snapshot{}
	if err := x.Save(s); err != nil {
		return nil, err
	}
	return s, nil
}

// commands are those of an outbox, without the markers.
func commands(outbox []byte) (all [][]byte) {
	var c abi.Command
	for at := 0; at < len(outbox); {
		n, err := abi.DecodeCommand(&c, outbox[at:])
		if err != nil {
			return all
		}
		if c.Op != abi.OpEnd {
			all = append(all, outbox[at:at+n])
		}
		at += n
	}
	return all
}

// mostText bounds what a Difference shows of each side, bytes.
const mostText = 512

func text(cmds [][]byte) string {
	var b strings.Builder
	for i, raw := range cmds {
		var c abi.Command
		if _, err := abi.DecodeCommand(&c, raw); err != nil || b.Len() > mostText {
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s", c.Op)
		if c.ToRef != 0 {
			fmt.Fprintf(&b, " to %d", uint64(c.ToRef))
		} else if c.ToPath != nil {
			fmt.Fprintf(&b, " to %q", c.ToPath)
		}
		if len(c.Payload) > 0 {
			fmt.Fprintf(&b, " %x", c.Payload[:min(len(c.Payload), 64)])
		}
	}
	if b.Len() == 0 {
		return "nothing"
	}
	return b.String()
}
