package bundle

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/wasmactors/wasmactors/internal/grammar"
	"github.com/wasmactors/wasmactors/internal/printable"
)

// line is one line of a feed.
type line struct {
	To      string
	Message json.RawMessage
	Ask     *bool
	Wait    string
}

// lineKeys are the keys of a line, and what their values must be.
var lineKeys = map[string]string{"to": "the name or the path of an actor, as a text", "message": "any value", "ask": "true or false", "wait": `"idle"`}

// parseLine reads a line, or says what is wrong with it.
func parseLine(text []byte) (l line, reason string) {
	var fields map[string]json.RawMessage
	d := json.NewDecoder(bytes.NewReader(text))
	if err := d.Decode(&fields); err != nil {
		return l, "not a message: " + jsonReason(err, text)
	}
	if _, err := d.Token(); err != io.EOF {
		return l, "more than one value in the line"
	}
	if fields == nil {
		return l, "not a message: null; " + exampleLine
	}
	into := map[string]any{"to": &l.To, "message": &l.Message, "ask": &l.Ask, "wait": &l.Wait}
	for key := range fields {
		if into[key] == nil {
			return l, fmt.Sprintf("not a message: unknown key %q%s", printable.Line(key, 60), grammar.Suggest(key, []string{"ask", "message", "to", "wait"}))
		}
	}
	for _, key := range []string{"to", "ask", "wait"} {
		if v, ok := fields[key]; ok && (json.Unmarshal(v, into[key]) != nil || string(v) == "null") {
			return l, fmt.Sprintf("not a message: %q must be %s", key, lineKeys[key])
		}
	}
	l.Message = fields["message"]
	switch _, waits := fields["wait"]; {
	case waits && (l.Wait != "idle" || len(fields) > 1):
		return l, waitLine
	case waits:
		return l, ""
	case fields["to"] == nil && l.Message == nil:
		return l, exampleLine
	case fields["to"] == nil:
		return l, `"to" is missing: ` + exampleLine
	case l.To == "":
		return l, `"to" is empty: ` + exampleLine
	case l.Message == nil:
		return l, `"message" is missing: ` + exampleLine
	}
	return l, ""
}

// jsonReason says in plain words why a text is not a JSON object.
func jsonReason(err error, text []byte) string {
	var syntax *json.SyntaxError
	var typ *json.UnmarshalTypeError
	switch {
	case errors.As(err, &typ):
		article := "a "
		if typ.Value == "array" {
			article = "an "
		}
		return article + typ.Value + " and no object; " + exampleLine
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "the JSON ends too early"
	case errors.As(err, &syntax):
		return fmt.Sprintf("%s, at character %d", strings.TrimPrefix(syntax.Error(), "json: "), max(syntax.Offset, 1))
	}
	return strings.TrimPrefix(err.Error(), "json: ")
}
