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
