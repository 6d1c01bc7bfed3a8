package admin

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"strconv"
	"testing"

	"github.com/wasmactors/wasmactors/host/admin/endpoint"
)

var update = flag.Bool("update", false, "write openapi.json again")

// alsoDescribed is in the file for whoever reads what the command line prints.
var alsoDescribed = []any{Notice{}, ErrorBody{}, endpoint.RunningList{}, Table{}}

// describe makes the OpenAPI file of the table of routes and the types in it.
func describe(t *testing.T) []byte {
	s := newSchemas(t, ".", "../observe", "endpoint", "../service/kv/operate")
	paths := object{}
	for _, r := range table() {
		at, _ := paths[r.path].(object)
		if at == nil {
			at = object{}
			paths[r.path] = at
		}
		at[map[string]string{"GET": "get", "POST": "post", "DELETE": "delete"}[r.method]] = operation(s, r)
	}
	for _, v := range alsoDescribed {
		s.of(reflect.TypeOf(v))
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(object{
		"openapi": "3.1.0",
		"info": object{"title": "wasmactors", "version": "1", "description": "A running system, to be looked at and steered. Times are RFC 3339, durations whole nanoseconds in fields that end in _ns, sizes bytes. " +
			"At the Unix socket no token is needed; on TCP one is, full or read-only, and what changes something needs the full one. A request with a body says Content-Type: application/json. Numbers of JSON beyond 2^53 occur: fuel, for one."},
		"servers": []any{object{"url": "http://wasmactors", "description": "at the Unix socket"}, object{"url": "http://127.0.0.1:{port}", "variables": object{"port": object{"default": "7777"}}}},
		"paths":   paths,
		"components": object{
			"schemas": s.made,
			"securitySchemes": object{
				"token":   object{"type": "http", "scheme": "bearer"},
				"session": object{"type": "apiKey", "in": "header", "name": SessionKey, "description": "with the cookie of the session"},
			},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// operation describes one route.
func operation(s *schemas, r *route) object {
	o := object{"summary": r.about, "security": []any{object{"token": []any{}}, object{"session": []any{}}}}
	if r.needs == nobody {
		o["security"] = []any{}
	}
	var params []any
	for _, p := range r.params {
		params = append(params, object{"name": p.name, "in": "query", "required": p.needed, "description": p.about, "schema": map[paramKind]object{
			textParam: {"type": "string"}, textsParam: {"type": "array", "items": object{"type": "string"}, "maxItems": mostValues}, countParam: {"type": "integer", "minimum": 0},
			flagParam: {"type": "boolean"}, secondsParam: {"type": "number", "exclusiveMinimum": 0}, timeParam: {"type": "string", "format": "date-time"},
		}[p.kind]})
	}
	if params != nil {
		o["parameters"] = params
	}
	if r.body != nil {
		o["requestBody"] = object{"required": true, "content": object{mediaJSON: object{"schema": s.of(reflect.TypeOf(r.body))}}}
	}
	answer := object{"description": "Done."}
	switch {
	case r.stream:
		content := object{}
		line := object{"oneOf": []any{s.of(reflect.TypeOf(r.answer)), s.of(reflect.TypeFor[Notice]())}}
		for _, m := range r.media {
			content[m] = object{"schema": object{"type": "string", "description": "lines of JSON"}, "x-line-schema": line}
		}
		answer["content"] = content
	case r.answer != nil:
		answer["content"] = object{mediaJSON: object{"schema": s.of(reflect.TypeOf(r.answer))}}
	case r.media != nil:
		answer["content"] = object{r.media[0]: object{}}
	}
	status := 200
	if r.method == "DELETE" {
		status = 204
	}
	problem := object{"description": "Why not.", "content": object{mediaJSON: object{"schema": s.of(reflect.TypeFor[ErrorBody]())}}}
	o["responses"] = object{strconv.Itoa(status): answer, "default": problem}
	if r.path == "/healthz" || r.path == "/readyz" {
		o["responses"] = object{"200": answer, "503": answer, "default": problem}
	}
	return o
}

// The file is what the routes and the types say: go test ./host/admin -run OpenAPI -update.
func TestOpenAPIIsCurrent(t *testing.T) {
	text := describe(t)
	if *update {
		if err := os.WriteFile("openapi.json", text, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(text, OpenAPI()) {
		t.Error("openapi.json is out of date: go test ./host/admin -run OpenAPI -update")
	}
}
