//go:build unix

package main

import (
	"bytes"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/wasmactors/wasmactors/host/admin"
)

// scriptCommands are those that the scripts have besides the usual ones.
var scriptCommands = map[string]func(*testscript.TestScript, bool, []string){
	"startup": startup, "await": await, "schema": checkSchema, "terminate": terminate,
}

// startup runs a bundle in the background of a script, with its standard error in a file:
// startup LOG ARGUMENT...
func startup(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: startup log argument...")
	}
	log := ts.MkAbs(args[0])
	quoted := "exec wasmactors run"
	for _, a := range args[1:] {
		quoted += " '" + a + "'"
	}
	ts.Check(ts.Exec("sh", "-c", "("+quoted+") </dev/null >"+log+".out 2>"+log+" & echo $! >"+log+".pid"))
	ts.Defer(func() { end(log, syscall.SIGKILL) })
	waitStarted(ts, log)
}

// waitStarted waits until a run says in its log that it is up.
func waitStarted(ts *testscript.TestScript, log string) {
	for until := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		text, _ := os.ReadFile(log)
		if bytes.Contains(text, []byte("is up")) {
			return
		}
		if time.Now().After(until) {
			ts.Fatalf("it is not up: %s", text)
		}
	}
}

// await repeats a command until its output matches: await PATTERN COMMAND ARGUMENT...
func await(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: await pattern command argument...")
	}
	want := regexp.MustCompile("(?m)" + args[0])
	for until := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		_ = ts.Exec(args[1], args[2:]...)
		text := ts.ReadFile("stdout") + ts.ReadFile("stderr")
		if want.MatchString(text) {
			return
		}
		if time.Now().After(until) {
			ts.Fatalf("%v: no %s in %s", args[1:], want, text)
		}
	}
}

// terminate ends the run of a log and waits for it: terminate LOG.
func terminate(ts *testscript.TestScript, _ bool, args []string) {
	if !end(ts.MkAbs(args[0]), syscall.SIGTERM) {
		ts.Fatalf("it does not end")
	}
}

// end signals the process of a log and waits until it has gone.
func end(log string, s syscall.Signal) bool {
	text, err := os.ReadFile(log + ".pid")
	if err != nil {
		return false
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return false
	}
	for until := time.Now().Add(patience); time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
		if err := syscall.Kill(pid, s); err != nil {
			_ = os.Remove(log + ".pid")
			return true
		}
		s = 0
		if !lives(pid) {
			_ = os.Remove(log + ".pid")
			return true
		}
	}
	return false
}

// checkSchema checks each line of a file, or of standard output, against a schema of the
// API's description: schema NAME FILE. NAME|NAME is one of several.
func checkSchema(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: schema name file")
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(admin.OpenAPI()))
	ts.Check(err)
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	ts.Check(c.AddResource("openapi.json", doc))
	var any []*jsonschema.Schema
	for _, name := range strings.Split(args[0], "|") {
		s, err := c.Compile("openapi.json#/components/schemas/" + name)
		ts.Check(err)
		any = append(any, s)
	}
	lines := 0
	for _, line := range strings.Split(ts.ReadFile(args[1]), "\n") {
		if strings.TrimSpace(line) == "" {
			continue
		}
		lines++
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(line))
		ts.Check(err)
		var wrong error
		for _, s := range any {
			if wrong = s.Validate(v); wrong == nil {
				break
			}
		}
		if wrong != nil {
			ts.Fatalf("%s: %v", line, wrong)
		}
	}
	if lines == 0 {
		ts.Fatalf("%s is empty", args[1])
	}
}
