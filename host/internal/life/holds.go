package life

// Hold is a reason why an actor does not handle messages, besides its state.
type Hold uint32

const (
	Grace    Hold = 1 << iota // shortly after a delayed restart
	Starved                   // there is no instance at the moment
	Paused                    // an operator has paused it
	Below                     // so is all below it; only with Paused
	Renewed                   // its supervisor has been told to restart it
	Commit                    // its turn waits for the recorder
	Still                     // a checkpoint is made
	Swapping                  // its code is about to be exchanged
)

// Held reports whether one of the reasons applies.
func (m *Machine) Held(what Hold) bool { return Hold(m.holds.Load())&what != 0 }

// Hold adds reasons.
func (m *Machine) Hold(what Hold) { m.holds.Store(m.holds.Load() | uint32(what)) }

// LetGo removes reasons.
func (m *Machine) LetGo(what Hold) { m.holds.Store(m.holds.Load() &^ uint32(what)) }

// Free reports whether no reason applies.
func (m *Machine) Free() bool { return m.holds.Load() == 0 }
