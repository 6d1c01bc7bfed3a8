package cddl

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// Two ends of a conversation, and what is wrong with them; "" if nothing is.
func TestCompatibility(t *testing.T) {
	for _, c := range []struct{ name, sent, accepted, want string }{
		{"the same", `{"a": int}`, `{"a": int}`, ""},
		{"optional is added for the writer", `{"a": int, "b": tstr}`, `{"a": int, * any => any}`, ""},
		{"optional is added for the reader", `{"a": int}`, `{"a": int, ? "b": tstr, * any => any}`, ""},
		{"unknown keys are kept", `{"a": int, * any => any}`, `{"a": int, * any => any}`, ""},
		{"required is added for the reader", `{"a": int}`, `{"a": int, "b": tstr}`, `2:16: T."b" is required and not sent`},
		{"left out at times", `{? "a": int}`, `{"a": int}`, `T."a" is required and sometimes left out`},
		{"refused by the reader", `{"a": int, "b": tstr}`, `{"a": int}`, `T."b" is sent, and unknown keys are refused`},
		{"kept and refused", `{* any => any}`, `{? "a": int}`, "T is passed on with unknown keys, and those are refused"},
		{"another type", `{"a": int}`, `{"a": tstr}`, `T."a" is sent as an integer from -18446744073709551616 to 18446744073709551615, and accepted as a text`},
		{"another type of an optional key", `{"a": int}`, `{? "a": tstr, * any => any}`, `T."a" is sent as an integer`},
		{"wider", `{"a": 0..255}`, `{"a": 0..65535}`, ""},
		{"narrower", `{"a": 0..65535}`, `{"a": 0..255}`, "accepted as an integer from 0 to 255"},
		{"signed into unsigned", `{"a": int}`, `{"a": uint}`, "accepted as an integer from 0 to"},
		{"uint into int", `{"a": uint}`, `{"a": int}`, ""},
		{"integer into number", `{"a": int}`, `{"a": number}`, ""},
		{"integer into float", `{"a": int}`, `{"a": float64}`, "and accepted as a float of 64 bits"},
		{"float into number", `{"a": float64}`, `{"a": number}`, ""},
		{"float into float", `{"a": float32}`, `{"a": float}`, ""},
		{"float into another", `{"a": float32}`, `{"a": float64}`, "as a float of 32 bits, and accepted as a float of 64 bits"},
		{"null is accepted", `{"a": tstr}`, `{"a": tstr / null}`, ""},
		{"null is not", `{"a": tstr / null}`, `{"a": tstr}`, `T."a" is sent as null, and accepted as a text`},
		{"choices", `{"a": tstr / int}`, `{"a": int / null / tstr}`, ""},
		{"any", `{"a": [* {* tstr => bool}]}`, `{"a": any}`, ""},
		{"what may be anything", `{"a": any}`, `{"a": int}`, `T."a" is sent as anything`},
		{"bytes", `{"a": bstr .size 4}`, `{"a": bstr}`, ""},
		{"bytes of a length", `{"a": bstr}`, `{"a": bstr .size 4}`, "sent as a byte string, and accepted as 4 bytes"},
		{"an array", `{"a": [2*2 int]}`, `{"a": [* int]}`, ""},
		{"an array of a length", `{"a": [* int]}`, `{"a": [2*2 int]}`, "sent as an array, and accepted as an array of 2"},
		{"elements that are numbers", `{"a": [* 1..9]}`, `{"a": [*9 1..9]}`, "sent as an array, and accepted as an array of 0 to 9"},
		{"elements", `{"a": [* int]}`, `{"a": [* tstr] / null}`, `T."a"[] is sent as an integer`},
		{"tables", `{"a": {* tstr => 0..9}}`, `{"a": {* tstr => uint}}`, ""},
		{"keys of tables", `{"a": {* int => bool}}`, `{"a": {* tstr => bool}}`, `a key of T."a" is sent as`},
		{"keys in a table", `{"a": {"x": int, "y": int}}`, `{"a": {* tstr => int}}`, ""},
		{"other keys in a table", `{"a": {1: int}}`, `{"a": {* tstr => int}}`, `the key T."a".1 is sent as 1`},
		{"a table into anything", `{"a": {* tstr => int}}`, `{"a": {* any => any}}`, ""},
		{"numbers as keys", `{1: int, -1: tstr}`, `{? 1: int, ? -1: tstr}`, ""},
		{"a key's kind counts", `{"1": int}`, `{? 1: int}`, `T."1" is sent, and unknown`},
		{"words as keys", `{a: int}`, `{"a": int}`, ""},
		{"another shape", `{"a": [* int]}`, `{"a": {* tstr => int}}`, "sent as an array, and accepted as a map"},
		{"within a rule", "{\"k\": Kid}\nKid = {\"x\": tstr}", "{\"k\": Kid / null}\nKid = {\"x\": int}", `T."k"."x" is sent as a text`},
		{"recursive", "{? \"k\": [* T]}", "{? \"k\": [* T] / null, * any => any}", ""},
		{"recursive and different", "{? \"k\": [* T], \"v\": tstr}", "{? \"k\": [* T] / null, \"v\": int}", `T."v" is sent as a text`},
		{"not a map", "int", "tstr", "T is sent as an integer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			from, err := Parse("a.cddl", []byte("; a\nT = "+c.sent+"\n"))
			if err != nil {
				t.Fatal(err)
			}
			to, err := Parse("b.cddl", []byte("; b\nT = "+c.accepted+"\n"))
			if err != nil {
				t.Fatal(err)
			}
			var all []string
			for _, m := range Compare(from, "T", to, "T") {
				if m.Do == "" || m.Sent.File != "a.cddl" || m.Accepted.File != "b.cddl" || m.Sent.Line < 2 || m.Sent.Column < 1 {
					t.Errorf("%+v", m)
				}
				all = append(all, fmt.Sprintf("%s: %s: %s", m.Sent, m.Accepted, m.What))
			}
			text := strings.Join(all, "\n")
			if c.want == "" && text != "" || c.want != "" && (len(all) != 1 || !strings.Contains(text, c.want)) {
				t.Errorf("%s\nwant %s", text, c.want)
			}
		})
	}
}

func TestWhatIsNotRead(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"a = ", "f:1:5: expected a type"},
		{"a int", "f:1:3: expected =, after the name of a rule"},
		{"a = b", "f:1:5: there is no rule b"},
		{"a = int\na = int", "f:2:1: the rule a is defined twice, first at f:1:1"},
		{"int = tstr", "the rule int has a name that CDDL predefines"},
		{"a = a", "the rule a is defined by itself"},
		{"a = b / int\nb = tstr / a", "is defined by itself"},
		{"a /= int", "f:1:3: unsupported"},
		{"a = #6.1(int)", "f:1:5: unsupported"},
		{"a = (x: int // y: int)", "f:1:7: expected ), at the end of a type in parentheses"},
		{"a = 5..1", "a range that ends before it begins"},
		{"a = 1...3", "f:1:6: unsupported"},
		{"a = 99999999999999999999", "expected an integer of 64 bits"},
		{"a = bstr .cbor int", "the only supported control is .size"},
		{"a = [int]", "in an array: how many elements there are"},
		{"a = [3*2 int]", "a range that ends before it begins"},
		{"a = [* int", "expected ], at the end of an array"},
		{`a = {"x": int, "x": int}`, "the key comes twice, first at f:1:6"},
		{`a = {"x" => int}`, "expected :, behind a key"},
		{`a = {* any => any, "x": int}`, "* any => any must come last"},
		{`a = {"x": int, * tstr => int}`, "unsupported: besides single keys, only * any => any is read"},
		{"a = {\"x: int}", "a text without an end"},
		{`a = {"\x": int}`, "a text with an unsupported escape"},
		{"a = " + strings.Repeat("[* ", 100) + "int" + strings.Repeat("]", 100), "nested too deeply"},
		{"a = int\xff", "the file is not UTF-8"},
		{strings.Repeat(" ", MaxBytes+1), "larger than 1 MiB"},
	} {
		_, err := Parse("f", []byte(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.40q: %v\nwant %s", c.text, err, c.want)
		}
	}
}

// generated are files that the generator has written.
var generated = []string{"../../host/typed/testdata/mapped/types.cddl", "../../host/typed/testdata/mapped/versions.cddl", "../../host/typed/testdata/bank/messages.cddl"}

// What the generator writes is read, and what a writer writes its own reader accepts.
func TestGeneratedFilesFitThemselves(t *testing.T) {
	n := 0
	for _, name := range generated {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		f, err := Parse(name, text)
		if err != nil {
			t.Fatal(err)
		}
		for _, rule := range f.Names() {
			own, ok := strings.CutSuffix(rule, ".sent")
			if !ok {
				continue
			}
			n++
			for _, m := range Compare(f, rule, f, own) {
				t.Errorf("%s: %s: %s", m.Sent, m.Accepted, m.What)
			}
		}
	}
	if n < 15 {
		t.Errorf("only %d rules were compared", n)
	}
}

// Rules that would take for ever to compare are given up.
func TestComparisonsAreBounded(t *testing.T) {
	var a, b strings.Builder
	for i := range 40 {
		next := "R" + fmt.Sprint(i+1)
		fmt.Fprintf(&a, "R%d = [* %s] / [* [* %s]]\n", i, next, next)
		fmt.Fprintf(&b, "R%d = [0*9 %s] / [0*8 %s] / [* [* %s]] / [* %s]\n", i, next, next, next, next)
	}
	a.WriteString("R40 = int\n")
	b.WriteString("R40 = tstr\n")
	from, err := Parse("a", []byte(a.String()))
	if err != nil {
		t.Fatal(err)
	}
	to, err := Parse("b", []byte(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	if len(Compare(from, "R0", to, "R0")) == 0 {
		t.Error("they fit")
	}
}

// FuzzParse: no input panics, and what is read fits itself.
func FuzzParse(f *testing.F) {
	f.Add("a = {\"b\": int, ? 1: [* tstr] / null, * any => any}\nc = a / 1..2 ; d\n")
	f.Add("a.b-c@1 = {* tstr => (bstr .size 4)}\n")
	f.Fuzz(func(t *testing.T, text string) {
		x, err := Parse("f", []byte(text))
		if err != nil || len(text) > 400 {
			return
		}
		for _, name := range x.Names() {
			for _, m := range Compare(x, name, x, name) {
				t.Fatalf("%s does not fit itself: %+v", name, m)
			}
		}
	})
}

// A file is read and compared in time and room that grow with its length, whatever is in it.
func TestHostileFiles(t *testing.T) {
	deep := func(key string) string {
		var b strings.Builder
		for i := range maxRules - 1 {
			fmt.Fprintf(&b, "R%d = {\"%s\": R%d}\n", i, key, i+1)
		}
		fmt.Fprintf(&b, "R%d = int\n", maxRules-1)
		return b.String()
	}
	many := func(head, each, tail string) string {
		return head + strings.Repeat(each, (MaxBytes-len(head+tail))/len(each)) + tail
	}
	var chain, keys strings.Builder
	for i := range maxRules - 1 {
		fmt.Fprintf(&chain, "R%d = R%d\n", i, i+1)
	}
	fmt.Fprintf(&chain, "R%d = int\n", maxRules-1)
	keys.WriteString("R0 = {")
	for i := 0; keys.Len() < MaxBytes-100; i++ {
		fmt.Fprintf(&keys, "%d:int,", i)
	}
	keys.WriteString("* any => any}\n")
	for name, text := range map[string]string{
		"a chain of names": chain.String(),
		"many keys":        keys.String(),
		"keys in keys":     deep(strings.Repeat("k", 80)),
		"a long name":      many("a", "-", "b = int\nR0 = int"),
		"many ends":        many("R0 = a", ".-", "b"),
		"many choices":     many("R0 = int", "/1", ""),
		"many texts":       many("R0 = ", "\"", ""),
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			began := time.Now()
			f, err := Parse("f", []byte(text))
			if err == nil {
				Compare(f, "R0", f, "R0")
			} else if len(err.Error()) > 2*maxName {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
			took := time.Since(began)
			runtime.ReadMemStats(&after)
			t.Logf("%d KB: %v, %d MB", len(text)>>10, took, (after.TotalAlloc-before.TotalAlloc)>>20)
			if made := after.TotalAlloc - before.TotalAlloc; made > 400<<20 {
				t.Errorf("%d MB", made>>20)
			}
			if took > 20*time.Second { // it was minutes
				t.Errorf("%v", took)
			}
		})
	}
}
