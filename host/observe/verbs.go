package observe

// The verbs.
const (
	VerbStop         = "stop"          // orderly: after the present turn, children first; not of services
	VerbKill         = "kill"          // at once: a guest's turn that runs is ended; a service comes back
	VerbRestart      = "restart"       // a fresh incarnation, at once; counts in no window
	VerbPause        = "pause"         // messages wait
	VerbUnpause      = "unpause"       // they are handled again
	VerbCrash        = "crash"         // a simulated failure, to see the supervisor work
	VerbDecide       = "decide"        // about an actor that waits for an operator's decision
	VerbResetBackoff = "reset-backoff" // count its failures from the beginning

	VerbRedeliver = "redeliver" // dead letters; see Observer.Redeliver
)

// Verbs are the names of all verbs that [Observer.Do] knows.
func Verbs() []string {
	return []string{VerbStop, VerbKill, VerbRestart, VerbPause, VerbUnpause, VerbCrash, VerbDecide, VerbResetBackoff}
}

// Verb is an order for actors.
type Verb struct {
	Verb      string `json:"verb"`
	Select    Select `json:"select"` // must name something: paths, types, states or refs
	DryRun    bool   `json:"dry_run,omitempty"`
	Subtree   bool   `json:"subtree,omitempty"`   // pause, unpause: all below it, too
	Directive string `json:"directive,omitempty"` // decide: resume, restart or stop
	Reason    string `json:"reason,omitempty"`    // crash: what the failure says
	Kind      string `json:"kind,omitempty"`      // crash: the kind of failure; "" is guest_error
}

// Outcome is what a verb has done, or with DryRun would do.
type Outcome struct {
	Version int      `json:"version"`
	Verb    string   `json:"verb"`
	DryRun  bool     `json:"dry_run"`
	Total   int      `json:"total"`   // actors that were selected
	Changed []Change `json:"changed"` // of each, in the order of the paths; MaxChanges at most
	Done    int      `json:"done"`    // without an error
	Failed  int      `json:"failed"`
}

// MaxChanges limits the list of an Outcome; the verb still applies to all selected actors.
const MaxChanges = 10_000

// Change is what has happened to one actor.
type Change struct {
	Path  string `json:"path"`
	Ref   string `json:"ref"`
	ID    uint64 `json:"id,omitempty"`    // of a dead letter
	State State  `json:"state,omitempty"` // of an actor, before
	Did   string `json:"did,omitempty"`   // what was done, or would be
	Error string `json:"error,omitempty"`
}

func (o *Outcome) add(c Change) {
	o.Total++
	if c.Error == "" {
		o.Done++
	} else {
		o.Failed++
	}
	if len(o.Changed) < MaxChanges {
		o.Changed = append(o.Changed, c)
	}
}
