package host

import (
	"fmt"
	"strings"
)

// What does not fit to the records of a store.

// notDurableNow is about a recorded actor whose place another one has.
func notDurableNow(path string) error {
	return fmt.Errorf("%s has a state in the store, and is not durable now: make it durable again, or have the store forget it", path)
}

// notStartedNow is about recorded children of an actor.
func notStartedNow(parent *actor) error {
	return fmt.Errorf("%s starts no such child now: it must start those that it has had, or be forgotten by the store", parent.path)
}

// nameBelow is the name of a recorded actor, which its path says.
func nameBelow(parent *actor, path string) (name string, err error) {
	name, ok := strings.CutPrefix(path, parent.path+"/")
	if !ok {
		err = fmt.Errorf("%s is recorded, and is not below %s: a system that has had a store keeps its name", path, parent.path)
	}
	return name, err
}
