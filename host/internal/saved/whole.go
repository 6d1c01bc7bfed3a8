package saved

import (
	"strings"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/life"
	"github.com/wasmactors/wasmactors/host/internal/supervisor"
	"github.com/wasmactors/wasmactors/host/record"
	"github.com/wasmactors/wasmactors/host/view"
)

// Head is what a checkpoint has besides actors.
type Head struct {
	Version  int              `cbor:"1,keyasint"`
	Lives    []Lives          `cbor:"2,keyasint"`
	Super    supervisor.State `cbor:"3,keyasint"` // of /user
	Jitter   []byte           `cbor:"4,keyasint,omitempty"`
	Children []Child          `cbor:"5,keyasint"` // the durable ones
}

// Lives is how many lives an actor below /user has had.
type Lives struct {
	_    struct{} `cbor:",toarray"`
	Path string
	N    uint64
}

// Whole is what there is to an actor besides a guest's own state.
type Whole struct {
	Parent   abi.Ref `cbor:"1,keyasint"`
	Path     string  `cbor:"2,keyasint"`
	Args     []byte  `cbor:"3,keyasint"`
	Code     []byte  `cbor:"4,keyasint"`
	Spawned  bool    `cbor:"5,keyasint,omitempty"` // by its parent, with these options; else the parent's props name it
	Options  []byte  `cbor:"6,keyasint,omitempty"`
	Position uint64  `cbor:"7,keyasint"` // of the last message that the mailbox has taken

	Life      life.State   `cbor:"8,keyasint"`
	Suspended int          `cbor:"9,keyasint,omitempty"`
	Paused    bool         `cbor:"10,keyasint,omitempty"`
	Below     bool         `cbor:"11,keyasint,omitempty"` // and so is all below it
	Begun     bool         `cbor:"12,keyasint,omitempty"`
	Crowded   bool         `cbor:"13,keyasint,omitempty"`
	Orders    uint64       `cbor:"14,keyasint,omitempty"`
	Cause     *abi.Failure `cbor:"15,keyasint,omitempty"`
	Ended     life.Ending  `cbor:"16,keyasint,omitempty"`
	Started   int64        `cbor:"17,keyasint,omitempty"` // the incarnation, ns since 1970
	Turned    int64        `cbor:"18,keyasint,omitempty"` // time of the last turn
	Failed    bool         `cbor:"19,keyasint,omitempty"` // the guest's state is the one after a failed turn

	Due      int64     `cbor:"20,keyasint,omitempty"` // of the receive timeout
	Waits    bool      `cbor:"21,keyasint,omitempty"` // its envelope waits in the mailbox
	Mail     []Mail    `cbor:"22,keyasint,omitempty"`
	Watchers []abi.Ref `cbor:"23,keyasint,omitempty"`
	Rewind   *Rewind   `cbor:"24,keyasint,omitempty"`
	Start    *Start    `cbor:"25,keyasint,omitempty"` // a start that waits for room
	Restart  *Restart  `cbor:"26,keyasint,omitempty"`
	Grace    *Grace    `cbor:"27,keyasint,omitempty"`

	Super     supervisor.State `cbor:"28,keyasint"`
	Jitter    []byte           `cbor:"29,keyasint,omitempty"`
	AutoNames uint64           `cbor:"30,keyasint,omitempty"`
	HostRefs  uint64           `cbor:"31,keyasint,omitempty"`

	Limits *view.Limits `cbor:"32,keyasint,omitempty"` // nil in those of earlier releases
	Next   []byte       `cbor:"33,keyasint,omitempty"` // what its next incarnation begins with, if that is not Code
	Trial  *Trial       `cbor:"34,keyasint,omitempty"` // its code was exchanged, and it can go back
	Noted  *Noted       `cbor:"35,keyasint,omitempty"` // nil in those of earlier releases

	Rules *record.Rules `cbor:"36,keyasint,omitempty"` // nil in those of earlier releases; else they inherit nothing

	Knows func(abi.Ref) bool `cbor:"-"` // actors of the checkpoint; not stored
}

// Rewind is what resume needs.
type Rewind struct {
	Why   string   `cbor:"1,keyasint,omitempty"`
	Guest []byte   `cbor:"2,keyasint,omitempty"`
	Log   []Logged `cbor:"3,keyasint,omitempty"`
}

type Logged struct {
	_      struct{} `cbor:",toarray"`
	Mail   Mail
	Now    int64
	Turn   uint64
	Behind bool
	Unread bool
}

type Start struct {
	_     struct{} `cbor:",toarray"`
	Cause *abi.Failure
	Held  bool
}

type Restart struct {
	_                struct{} `cbor:",toarray"`
	Cause            *abi.Failure
	Due              int64 // ns since 1970; of one with a delay
	Delay, Over      bool  // there was a delay; it has passed
	Keep, Hold, Told bool
}

type Grace struct {
	_    struct{} `cbor:",toarray"`
	All  bool
	Due  int64
	Mail []Mail
}

// name is the last element of the path.
func (w *Whole) name() string { return w.Path[strings.LastIndexByte(w.Path, '/')+1:] }

// Told are those of whose end a message waits: nothing else tells an actor of it that returns. They are watched until its turn begins.
func (s *State) Told() map[abi.Ref]bool {
	if s.Whole == nil || len(s.Watches) == 0 {
		return nil
	}
	told := map[abi.Ref]bool{}
	lists := [][]Mail{s.Whole.Mail}
	if s.Whole.Grace != nil {
		lists = append(lists, s.Whole.Grace.Mail)
	}
	for _, list := range lists {
		for i := range list {
			if list[i].Kind == abi.KindTerminated {
				told[list[i].Sender] = true
			}
		}
	}
	return told
}

// wrong says why w is no state that an actor can be in.
func (w *Whole) wrong() string {
	switch {
	case w.Parent == 0 || w.Path == "" || len(w.Path) > abi.MaxPath:
		return "it has no parent or no path"
	case w.Life > life.Restarting || w.Suspended < 0 || w.Ended > life.Escalated:
		return "its life is in a state that none can be in"
	case w.Restart != nil != (w.Life == life.Restarting):
		return "it has a restart, or lacks one"
	case w.Rules != nil && w.Rules.Inherits:
		return "its rules are another actor's"
	case w.Rules != nil && w.Rules.Wrong() != "":
		return w.Rules.Wrong()
	}
	lists := [][]Mail{w.Mail}
	if w.Grace != nil {
		lists = append(lists, w.Grace.Mail)
	}
	for _, list := range lists {
		for i := range list {
			if list[i].Position == 0 || list[i].Position > w.Position {
				return "its mailbox has a message from nowhere"
			}
		}
	}
	return ""
}
