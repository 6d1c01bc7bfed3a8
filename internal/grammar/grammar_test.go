package grammar

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// everything is a shape with all kinds.
func everything() *Shape {
	var tree *Shape
	odd := &Own{
		Name: "an odd number",
		Check: func(c *Checker, n *yaml.Node, s *Shape, where string) {
			if i, err := WholeOf(n); err != nil || i%2 == 0 {
				c.Mismatch(n, s, where)
			}
		},
		Schema: func(_ *Shape, to map[string]any, _ SchemaOptions) { to["type"] = "integer" },
	}
	tree = ObjectOf("a tree", Optional("left", &Shape{Kind: Ref, Name: "tree", Self: func() *Shape { return tree }}))
	word := Enumerated("a colour", "red", "green")
	word.Words = "colours"
	return ObjectOf("a file",
		Required("text", &Shape{Kind: Text, Doc: "a text"}),
		Optional("filled", &Shape{Kind: Text, Doc: "a text", Filled: true}),
		Optional("match", (&Shape{Kind: Text, Doc: "a name", What: "a name", Match: NewRule("^[a-z]{1,3}$")}).But("no")),
		Optional("word", word),
		Optional("flag", Flags("a flag").Or("perhaps")),
		Optional("whole", Whole("a number", -1, 9).OrFlag()),
		Optional("number", &Shape{Kind: Number, Doc: "a number", Min: 0, Max: 1}),
		Optional("size", &Shape{Kind: Size, Doc: "a size", Min: 1 << 10, Max: 1 << 20}),
		Optional("count", &Shape{Kind: Count, Doc: "a count", Min: 1, Max: 1000}),
		Optional("span", &Shape{Kind: Duration, Doc: "a time", Max: 3.6e12}),
		Optional("list", ListOf("texts", &Shape{Kind: Text, Doc: "a text"})),
		Optional("map", (&Shape{Kind: Mapping, Doc: "numbers by name", What: "a name", Key: NewRule("^[a-z]+$"), Of: Whole("a number", 0, 9)}).But("x")),
		Optional("tree", tree),
		Optional("any", &Shape{Kind: Any, Doc: "anything"}),
		Optional("own", &Shape{Kind: OwnKind, Doc: "one that is odd", Own: odd}),
	)
}

// TestChecks: what fits and what does not, each with its place and its reason.
func TestChecks(t *testing.T) {
	for _, c := range []struct{ key, good, bad, want string }{
		{"text", "a", "1", "3:7: text must be a text (a text), not a number: quote it"},
		{"text", "''", "{}", "3:7: text must be a text (a text), not a mapping"},
		{"text", "a", "", "3:6: text must be a text (a text), not nothing"},
		{"filled", "a", "''", "3:9: filled is empty"},
		{"match", "abc", "abcd", `3:8: match: "abcd" is not a name`},
		{"match", "abc", "no", `3:8: match: "no" is not a name`},
		{"word", "red", "rd", `3:7: word cannot be "rd"; did you mean "red"?`},
		{"word", "mauve", "black", `3:7: word cannot be "black"; valid here: red, green, mauve`},
		{"flag", "true", "maybe", `3:7: flag cannot be "maybe"; valid here: true, false, perhaps`},
		{"flag", "perhaps", "1", "3:7: flag must be true or false (a flag), not a number"},
		{"whole", "9", "10", "3:8: whole must be at most 9, not 10"},
		{"whole", "-1", "-2", "3:8: whole must be at least -1, not -2"},
		{"whole", "007", "010", "3:8: whole must be at most 9, not 010"},
		{"whole", "true", "1.5", "3:8: whole must be a whole number (a number), not a number"},
		{"whole", "0x9", "99999999999999999999", "3:8: whole must be a whole number"},
		{"number", "0.5", "1.5", "3:9: number must be at most 1, not 1.5"},
		{"number", "1", ".nan", "3:9: number must be a number"},
		{"size", "64KiB", "2MiB", "3:7: size must be at most 1MiB, not 2MiB"},
		{"size", "1024", "1XiB", `3:7: size: "1XiB" is not a size`},
		{"count", "1k", "0", "3:8: count must be at least 1, not 0"},
		{"span", "1h", "61m", "3:7: span must be at most 1h, not 61m"},
		{"span", "0", "-1s", `3:7: span: "-1s" is negative`},
		{"list", "[a, b]", "[a, 1]", "3:11: list[1] must be a text"},
		{"list", "[]", "a", "3:7: list must be a list (texts), not a text"},
		{"map", "{a: 1}", "{A: 1}", `3:7: "A" is not a name`},
		{"map", "{}", "{x: 1}", `3:7: "x" is not a name`},
		{"map", "{a: 1}", "{a: 10}", "3:10: map.a must be at most 9, not 10"},
		{"tree", "{left: {left: {}}}", "{left: {lft: {}}}", `3:15: unknown key "lft" in tree.left; did you mean "left"?`},
		{"any", "[1, {a: !size 1KiB}]", "[!bytes x]", "3:7: the tag !bytes has no meaning here"},
		{"own", "3", "4", "3:6: own must be an odd number (one that is odd), not a number"},
	} {
		for i, value := range []string{c.good, c.bad} {
			file := fmt.Sprintf("# a comment\n%s\n%s: %s\n", map[bool]string{true: "filled: x", false: "text: x"}[c.key == "text"], c.key, value)
			check := &Checker{File: "f", Words: map[string][]string{"colours": {"mauve"}}}
			check.Document([]byte(file), "the file", func(root *yaml.Node) { check.Check(root, everything(), "the file") })
			switch {
			case i == 0 && len(check.Found) > 0:
				t.Errorf("%s: %s: %v", c.key, value, check.Found)
			case i == 1 && (len(check.Found) == 0 || !strings.HasPrefix(check.Found[0].String(), "f:"+c.want)):
				t.Errorf("%s: %s: %v, want %s", c.key, value, check.Found, c.want)
			}
		}
	}
}

// TestDocuments: a file is one document, and says each thing once.
func TestDocuments(t *testing.T) {
	for text, want := range map[string]string{
		"":                       "f:1:1: the file is empty",
		"text: x\n---\ntext: y":  "f:2:1: a second document begins here: the file is one",
		"text: x\ntext: y":       `f:2:1: the key "text" comes twice, first in line 1`,
		"text: &a x\nfilled: *a": "f:1:7: anchors and aliases are not supported; write the value out",
		"1: x":                   "f:1:1: the key 1 is a number and no text: quote it",
		"text: {":                "f:1:7: not YAML: this { is not closed",
		"filled: x":              `f:1:1: the file lacks the key "text" (a text)`,
		"[]":                     "f:1:1: the file must be a mapping (a file), not a list",
		"any: " + strings.Repeat("[", 70) + strings.Repeat("]", 70): "f:1:70: nested too deeply",
	} {
		c := &Checker{File: "f"}
		c.Document([]byte(text), "the file", func(root *yaml.Node) { c.Check(root, everything(), "the file") })
		if len(c.Found) == 0 || c.Found[0].String() != want {
			t.Errorf("%.40q: %v, want %s", text, c.Found, want)
		}
	}
}

// TestSchemas: a schema has what the shape has.
func TestSchemas(t *testing.T) {
	o := SchemaOptions{Words: map[string][]string{"colours": {"mauve"}}, Variables: true}
	text, err := json.Marshal(o.Schema(everything()))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"required":["text"]`, `"enum":["red","green","mauve"]`, `"enum":[true,false,"perhaps"]`, `"type":["integer","boolean"]`, `"$ref":"#/$defs/tree"`,
		`"pattern":"^[a-z]{1,3}$|\\$\\{[A-Za-z_]"`, `"not":{"enum":["no"]}`, `"minimum":1024`, `"additionalProperties":false`, `"propertyNames":{"not":{"enum":["x"]},"pattern":"^[a-z]+$"}`,
		`"description":"one that is odd","type":"integer"`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("it lacks %s:\n%s", want, text)
		}
	}
}

// FuzzDocument: no file panics, and what is wrong with one has a place.
func FuzzDocument(f *testing.F) {
	f.Add([]byte("text: x\nwhole: 3\nlist: [a]\ntree: {left: {}}\n"))
	f.Add([]byte("a: &b [*b]\n---\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c := &Checker{File: "f"}
		root := c.Document(data, "the file", func(root *yaml.Node) { c.Check(root, everything(), "the file") })
		if root == nil && len(c.Found) == 0 {
			t.Fatal("nothing is there, and nothing is wrong")
		}
		for _, d := range c.Found {
			if d.Line < 1 || d.Column < 1 || d.Message == "" {
				t.Fatalf("%+v", d)
			}
		}
	})
}
