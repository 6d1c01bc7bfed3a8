package grammar

import (
	"fmt"
	"strings"
)

// Diagnostic is one thing that is wrong with a file.
type Diagnostic struct {
	File         string
	Line, Column int // from 1
	Message      string
}

// String is file:line:column and the message.
func (d Diagnostic) String() string {
	return fmt.Sprintf("%s:%d:%d: %s", d.File, d.Line, d.Column, d.Message)
}

// Diagnostics is all that is wrong with a file, in the order of the file.
type Diagnostics []Diagnostic

func (ds Diagnostics) Error() string {
	lines := make([]string, len(ds))
	for i, d := range ds {
		lines[i] = d.String()
	}
	return strings.Join(lines, "\n")
}
