package bundle

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const conversation = `wasmactors: 1
name: a
modules: {m: {wasm: m.wasm}}
actors:
  asker:
    type: m/asker
    messages: {file: a.cddl, sends: {/user/bank: [%s]}}
  bank:
    type: m/bank
    messages: {file: b.cddl, accepts: [%s]}
`

// checkMessages is what CheckMessages says of a bundle with these files.
func checkMessages(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	m, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	err = m.CheckMessages()
	var ds Diagnostics
	if err != nil && !errors.As(err, &ds) {
		t.Fatal(err)
	}
	return strings.ReplaceAll(ds.Error(), dir+string(filepath.Separator), "")
}

// K19: both ends of a conversation, as the manifest names them. Each message has both places.
func TestK19_BothEndsOfAConversation(t *testing.T) {
	const (
		v1      = "pay@1 = {? \"cents\": int, * any => any}\npay@1.sent = {\"cents\": int}\n"
		v2      = "pay@2 = {\"cents\": int, ? \"currency\": tstr, * any => any}\npay@2.sent = {\"cents\": int, \"currency\": tstr}\n"
		answers = "done@1 = {\"n\": uint}\ndone@1.sent = {\"n\": uint}\npay@1.answer = done@1\n"
		other   = "done@1 = {\"n\": uint}\ndone@1.sent = {\"n\": uint / null}\npay@1.answer = done@1\n"
	)
	for _, c := range []struct{ name, sends, accepts, a, b, want string }{
		{"the same", "pay", "pay", v1, v1, ""},
		{"a version of several", "pay@1", "pay", v1 + v2, v1 + v2, ""},
		{"an older writer, with an adapter", "pay", "pay", v1, v1 + v2, ""},
		{"a newer writer", "pay", "pay", v1 + v2, v1,
			"bundle.yaml:7:51: pay@2 (a.cddl:3:1) is sent to /user/bank, which reads pay@1 (b.cddl:1:1): bring it up to date first, or send an older version"},
		{"an older writer, without an adapter", "pay", "pay", v1, v2, "which reads pay@2 (b.cddl:1:1): give it an adapter from that version on"},
		{"one version is accepted", "pay@1", "pay@2", v1 + v2, v1 + v2, "which reads pay@2 (b.cddl:3:1): give it an adapter"},
		{"an optional key is added", "pay", "pay", v1, strings.Replace(v1, "* any", "? \"note\": tstr, * any", 1), ""},
		{"a key is added by the writer", "pay", "pay", strings.Replace(v1, "\"cents\": int}", "\"cents\": int, \"note\": tstr}", 1), v1, ""},
		{"a required key is added", "pay", "pay", v1, strings.Replace(v1, "* any", "\"note\": tstr, * any", 1),
			`bundle.yaml:7:51: a.cddl:2:14: pay@1."note" is required and not sent; what /user/bank accepts is at b.cddl:1:26: send it, or remove required from the reader's`},
		{"another type", "pay", "pay", v1, strings.Replace(v1, "int", "tstr", 1),
			`a.cddl:2:24: pay@1."cents" is sent as an integer from -18446744073709551616 to 18446744073709551615, and accepted as a text; what /user/bank accepts is at b.cddl:1:21: give it one type`},
		{"not accepted", "pay", "paid", v1, strings.ReplaceAll(v1, "pay", "paid"), `which does not accept it: bundle.yaml:10:22 says what it accepts; did you mean "paid"?`},
		{"not defined by the sender", "pya", "pay", v1, v1, `bundle.yaml:7:51: messages.sends: a.cddl does not define pya; did you mean "pay"?`},
		{"not defined by the receiver", "pay", "pay, pays", v1, v1, `messages.accepts: b.cddl does not define pays; did you mean "pay"?`},
		{"answers", "pay", "pay", v1 + answers, v1 + answers, ""},
		{"an answer that nobody reads", "pay", "pay", v1, v1 + answers, ""},
		{"no answer", "pay", "pay", v1 + answers, v1, "pay@1 (a.cddl:1:1) is a question, and /user/bank does not answer it (b.cddl:1:1)"},
		{"an answer that does not fit", "pay", "pay", v1 + answers, v1 + other,
			`the answer of /user/bank: b.cddl:4:28: done@1."n" is sent as null, and accepted as an integer from 0 to 18446744073709551615; what the asker accepts is at a.cddl:3:16`},
		{"another answer", "pay", "pay", v1 + answers, v1 + strings.ReplaceAll(answers, "done", "undone"), "/user/bank answers with undone@1 (b.cddl:3:1), and done@1 (a.cddl:3:1) is what is read"},
		{"a file with mistakes", "pay", "pay", v1 + "x = ", v1, "a.cddl:3:5: expected a type"},
		{"no file", "pay", "pay", "", v1, "bundle.yaml:7:22: messages.file: a.cddl cannot be read: there is no such file; guest-sdk/gen -cddl writes it"},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := map[string]string{FileName: fmt.Sprintf(conversation, c.sends, c.accepts), "a.cddl": c.a, "b.cddl": c.b}
			if c.a == "" {
				delete(files, "a.cddl")
			}
			got := checkMessages(t, files)
			if c.want == "" && got != "" || !strings.Contains(got, c.want) || strings.Contains(got, "\n") {
				t.Errorf("%s\nwant %s", got, c.want)
			}
		})
	}
}

// Who says nothing is not compared, and patterns name several.
func TestMessagesOfSeveral(t *testing.T) {
	const pay = "pay = {? \"cents\": int}\npay.sent = {\"cents\": int}\n"
	manifest := fmt.Sprintf(conversation, "pay", "pay") + "    children:\n      x: {type: m/x, messages: {file: c.cddl, accepts: [pay]}}\n      y: {type: m/y}\n"
	manifest = strings.Replace(manifest, "/user/bank", "/user/bank/**", 1)
	if got := checkMessages(t, map[string]string{FileName: manifest, "a.cddl": pay, "b.cddl": pay, "c.cddl": strings.ReplaceAll(pay, "int", "tstr")}); !strings.Contains(got, "what /user/bank/x accepts is at c.cddl:1:19") || strings.Contains(got, "\n") {
		t.Error(got)
	}
}

func TestMessagesThatAreRefused(t *testing.T) {
	for _, c := range []struct{ messages, want string }{
		{"{accepts: [a]}", `lacks the key "file"`},
		{"{file: /etc/passwd}", `messages.file: "/etc/passwd" is not a path of a file`},
		{"{file: ../a.cddl}", `messages.file: "../a.cddl" is not in the folder of the manifest or below`},
		{"{file: a, accepts: [a b]}", `"a b" is not a type of message`},
		{"{file: a, accepts: ['a@0']}", `is not a type of message`},
		{"{file: a, sends: {bank: [a]}}", `"bank" is not a path`},
		{"{file: a, sends: {/user/bnk: [a]}}", `messages.sends: no actor of the bundle has the path /user/bnk; did you mean "/user/bank"?`},
	} {
		_, err := Parse("bundle.yaml", []byte("wasmactors: 1\nname: a\nmodules: {m: {wasm: m.wasm}}\nactors:\n  bank: {type: m/x, messages: "+c.messages+"}\n"))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v\nwant %s", c.messages, err, c.want)
		}
	}
}

// No link leads out of the bundle.
func TestMessagesStayInTheBundle(t *testing.T) {
	outside, dir := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "a.cddl"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(outside, "a.cddl"), filepath.Join(dir, "a.cddl")); err != nil {
		t.Skip(err)
	}
	if text, err := readWithin(dir, "a.cddl"); err == nil {
		t.Errorf("%q was read", text)
	}
	if _, err := readWithin(dir, "."); err == nil {
		t.Error("a folder was read")
	}
}
