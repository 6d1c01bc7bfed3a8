package actor

import (
	"strconv"

	"github.com/wasmactors/wasmactors/abi"
)

var diagrams []abi.Diagram

// Describe puts a diagram of what a type does into the module's description, such as Mermaid
// reads; `wasmactors inspect --fsm` shows it. It is called in init. A text of more than
// abi.MaxDiagram bytes, an invalid name and a second diagram of a type panic.
func Describe(typ, diagram string) {
	if !abi.ValidTypeName([]byte(typ)) {
		panic("actor.Describe: invalid type name " + typ)
	}
	if len(diagram) > abi.MaxDiagram {
		panic("actor.Describe: the diagram of " + typ + " has more than " + strconv.Itoa(abi.MaxDiagram) + " bytes")
	}
	for i := range diagrams {
		if diagrams[i].Type == typ {
			panic("actor.Describe: " + typ + " has a diagram already")
		}
	}
	diagrams = append(diagrams, abi.Diagram{Type: typ, Text: diagram})
}

var needs []string

// Need says that the module cannot do without a feature of the host, one of abi.Features: an older host
// then refuses to load it. It is called in init; once is enough, by any package that uses the feature. An
// unknown feature panics.
func Need(feature string) {
	for _, known := range abi.Features() {
		if known != feature {
			continue
		}
		for _, n := range needs {
			if n == feature {
				return
			}
		}
		needs = append(needs, feature)
		return
	}
	panic("actor.Need: there is no feature " + feature)
}
