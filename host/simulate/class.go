package simulate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/wasmactors/wasmactors/internal/grammar"
)

// Class is a class of faults.
type Class string

// The classes.
const (
	Crash        Class = "crash"         // a turn fails after all
	Fuel         Class = "fuel"          // a turn of a guest ends in the middle, when it has spent some fuel
	Memory       Class = "memory"        // a guest's memory does not grow during a turn
	Full         Class = "full"          // a mailbox refuses a message
	Drop         Class = "drop"          // a message or an answer is lost
	Late         Class = "late"          // a message comes later, and with it all that follow from its sender
	Twice        Class = "twice"         // a message comes twice; lossy places only
	Overtaken    Class = "overtaken"     // a message comes later, and others overtake it; lossy places only
	Order        Class = "order"         // the order of turns prefers some actors: one starves, the newest go first, one is always last
	Asleep       Class = "asleep"        // few guests have an instance at a time, the others wait for one or sleep
	Clock        Class = "clock"         // the wall clock steps, within MostStep
	ServiceSlow  Class = "service-slow"  // a service gets a request late, or its answer comes late
	ServiceFails Class = "service-fails" // a service refuses a request
	ServiceTwice Class = "service-twice" // a service's answer comes twice
	ServiceLost  Class = "service-lost"  // a service has done what it was asked to, and its answer is lost
	DiskFails    Class = "disk"          // a call of the store's disk fails; bundles with durable actors, as Death, or scenarios with nodes
	Death        Class = "death"         // the process dies, and another one begins with what it has left; of nodes all die at once
	Upgrade      Class = "upgrade"       // the code of guests is exchanged, and their state kept; bundles only
	NodeKill     Class = "node-kill"     // a node dies, and begins again later; scenarios with nodes only, as the next two
	NodePause    Class = "node-pause"    // a node stands still, for less than its lease or for longer
	NodePart     Class = "node-part"     // a node does not reach some others, or is not reached by them
)

// Bounds of faults.
const (
	MostStep  = time.Second      // of the wall clock, in either direction
	MostDelay = 10 * time.Second // of what comes late
)

// class says what there is to know of one.
type class struct {
	name Class
	doc  string
	odds [2]float64 // the least and the greatest rate for an opportunity
}

var classes = []class{
	{Crash, "a turn fails after all: it has done nothing, and its supervisor decides", [2]float64{0.002, 0.1}},
	{Fuel, "a turn of a guest ends in the middle, when it has spent some fuel", [2]float64{0.002, 0.05}},
	{Memory, "a guest's memory does not grow during a turn", [2]float64{0.002, 0.05}},
	{Full, "a mailbox refuses a message", [2]float64{0.002, 0.05}},
	{Drop, "a message or an answer between actors is lost", [2]float64{0.002, 0.05}},
	{Late, "a message comes later, and with it all that follow from its sender", [2]float64{0.005, 0.1}},
	{Twice, "a message to a lossy place comes twice", [2]float64{0.01, 0.2}},
	{Overtaken, "a message to a lossy place comes later, and others overtake it", [2]float64{0.01, 0.2}},
	{Order, "the order of turns prefers some actors", [2]float64{1, 1}},
	{Asleep, "few guests have an instance at a time", [2]float64{1, 1}},
	{Clock, "the wall clock steps, by a second at most", [2]float64{0.005, 0.05}},
	{ServiceSlow, "a request to a service, or its answer, comes late", [2]float64{0.01, 0.2}},
	{ServiceFails, "a service refuses a request", [2]float64{0.01, 0.2}},
	{ServiceTwice, "a service's answer comes twice", [2]float64{0.01, 0.2}},
	{ServiceLost, "a service has done what it was asked to, and its answer is lost", [2]float64{0.01, 0.1}},
	{DiskFails, "a write or a sync of the store fails; what nodes keep together is late, or fails, for a while", [2]float64{0.001, 0.03}},
	{Death, "the process dies, with all or a part of what was not synced, and another one begins; of nodes all die at once", [2]float64{0.001, 0.02}},
	{Upgrade, "the code of guests is exchanged for the same code, and their state goes over", [2]float64{0.001, 0.02}},
	{NodeKill, "a node dies, and begins again later", [2]float64{0.005, 0.05}},
	{NodePause, "a node stands still, for less than its lease or for longer", [2]float64{0.005, 0.05}},
	{NodePart, "a node does not reach some others, or is not reached by them", [2]float64{0.005, 0.05}},
}

// Classes are the names of all classes, in the order of the documentation.
func Classes() []Class {
	names := make([]Class, len(classes))
	for i := range classes {
		names[i] = classes[i].name
	}
	return names
}

// OfNodes reports whether faults of a class happen to nodes of a cluster.
func (c Class) OfNodes() bool { return c == NodeKill || c == NodePause || c == NodePart }

// Doc says in a line what faults of a class are; "" if there is no such class.
func (c Class) Doc() string {
	if i := slices.IndexFunc(classes, func(x class) bool { return x.name == c }); i >= 0 {
		return classes[i].doc
	}
	return ""
}

// ParseFaults reads a choice of classes, such as "all", "none", "crash,drop" or "all,-clock". The result is in the order of
// Classes.
func ParseFaults(text string) ([]Class, error) {
	on := map[Class]bool{}
	for i, word := range strings.Split(text, ",") {
		word = strings.TrimSpace(word)
		name, not := strings.CutPrefix(word, "-")
		switch {
		case word == "":
			return nil, fmt.Errorf("%q has an empty part: give classes of faults, separated by commas", text)
		case name == "all":
			for _, c := range classes {
				on[c.name] = !not
			}
		case name == "none" && !not:
			if i > 0 {
				return nil, fmt.Errorf("%q: none stands alone, or at the beginning", text)
			}
		case Class(name).Doc() == "":
			return nil, fmt.Errorf("there is no class of faults %q%s", name, grammar.Suggest(name, append(namesOf(Classes()), "all", "none")))
		default:
			if i == 0 && not { // -clock alone means all but clock
				for _, c := range classes {
					on[c.name] = true
				}
			}
			on[Class(name)] = !not
		}
	}
	return slices.DeleteFunc(Classes(), func(c Class) bool { return !on[c] }), nil
}

func namesOf(cs []Class) []string {
	out := make([]string, len(cs))
	for i, c := range cs {
		out[i] = string(c)
	}
	return out
}
