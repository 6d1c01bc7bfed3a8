package grammar

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
)

// syntaxError explains why a text is not YAML. Where it can, it gives the place of the cause
// and not the place at which the library has noticed it.
func syntaxError(file string, data []byte, err error) Diagnostic {
	if line, column, ok := tab(data); ok {
		return Diagnostic{file, line, column, "not YAML: a tab in the indentation; YAML needs spaces"}
	}
	if line, column, open, ok := unclosed(data); ok {
		return Diagnostic{file, line, column, fmt.Sprintf("not YAML: this %c is not closed", open)}
	}
	d := Diagnostic{file, 1, 1, "not YAML: " + strings.TrimPrefix(err.Error(), "yaml: ")}
	var line int
	if n, _ := fmt.Sscanf(err.Error(), "yaml: line %d:", &line); n == 1 && line > 0 {
		_, rest, _ := strings.Cut(err.Error(), fmt.Sprintf("line %d: ", line))
		d.Line, d.Message = line, "not YAML: "+rest
		if lines := bytes.Split(data, []byte("\n")); line <= len(lines) {
			text := lines[line-1]
			d.Column = 1 + utf8.RuneCount(text[:len(text)-len(bytes.TrimLeft(text, " "))])
		}
	}
	return d
}

// tab finds the first tab in an indentation.
func tab(data []byte) (line, column int, ok bool) {
	for i, text := range bytes.Split(data, []byte("\n")) {
		rest := bytes.TrimLeft(text, " ")
		if len(rest) > 0 && rest[0] == '\t' && len(bytes.TrimSpace(rest)) > 0 {
			return i + 1, len(text) - len(rest) + 1, true
		}
	}
	return 0, 0, false
}

// unclosed finds a brace or a bracket that opens a value and is not closed, or is closed by
// the wrong character. Those within quotes, comments and plain texts do not count.
func unclosed(data []byte) (line, column int, open byte, ok bool) {
	type place struct {
		line, column int
		open         byte
	}
	var stack []place
	line, column = 1, 0
	var quote, before byte = 0, '\n'
	for i := 0; i < len(data); i++ {
		b := data[i]
		if b&0xc0 != 0x80 {
			column++
		}
		switch {
		case b == '\n':
			line, column = line+1, 0
		case quote == '"' && b == '\\':
			i++
			column++
		case quote != 0:
			if b == quote {
				quote = 0
			}
		case b == '#' && strings.IndexByte(" \t\n", before) >= 0:
			for i+1 < len(data) && data[i+1] != '\n' {
				i++
			}
		case (b == '"' || b == '\'') && strings.IndexByte(" \t\n{[,:", before) >= 0:
			quote = b
		case (b == '{' || b == '[') && (strings.IndexByte(" \t\n{[,", before) >= 0):
			stack = append(stack, place{line, column, b})
		case (b == '}' || b == ']') && len(stack) > 0:
			top := stack[len(stack)-1]
			if b == '}' != (top.open == '{') {
				return top.line, top.column, top.open, true
			}
			stack = stack[:len(stack)-1]
		}
		before = b
	}
	if len(stack) == 0 {
		return 0, 0, 0, false
	}
	top := stack[len(stack)-1]
	return top.line, top.column, top.open, true
}
