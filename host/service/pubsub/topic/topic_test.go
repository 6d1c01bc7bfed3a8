package topic_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/host/service/pubsub/topic"
	"pgregory.net/rapid"
)

func TestCheck(t *testing.T) {
	long := strings.Repeat("a", topic.MaxBytes)
	deep := strings.Repeat("a.", topic.MaxTokens-1) + "a"
	for s, want := range map[string][2]string{ // as a topic, as a pattern
		"a": {}, "orders.eu.paid": {}, "größe.1": {}, "a$": {}, long: {}, deep: {}, "A-_/:!": {},
		"":            {"it is empty", "it is empty"},
		".":           {"a token is empty", "a token is empty"},
		"a.":          {"a token is empty", "a token is empty"},
		"a..b":        {"a token is empty", "a token is empty"},
		"*":           {"* is for patterns", ""},
		">":           {"> is for patterns", ""},
		"a.*.b.>":     {"* is for patterns", ""},
		"a.>.b":       {"> is for patterns", "> can only be the last token"},
		"a*.b":        {"* is for patterns", "* stands for whole tokens only"},
		"a.>>":        {"> is for patterns", "> stands for whole tokens only"},
		"$sys.a":      {"reserved for the host", "reserved for the host"},
		"a b":         {"a space", "a space"},
		"a\nb":        {"a space", "a space"},
		"a\x00":       {"control character", "control character"},
		"a\u2028b":    {"a space", "a space"},
		"\xff":        {"not UTF-8", "not UTF-8"},
		long + "a":    {"257 bytes, at most 256", "257 bytes, at most 256"},
		deep + ".b":   {"more than 32 tokens", "more than 32 tokens"},
		deep + "b.>.": {"more than 32 tokens", "more than 32 tokens"},
	} {
		for i, err := range []error{topic.Check(s), topic.CheckPattern(s)} {
			if (err == nil) != (want[i] == "") || err != nil && !strings.Contains(err.Error(), want[i]) {
				t.Errorf("%.40q as %d: %v, want %q", s, i, err, want[i])
			}
		}
	}
}

// naive is the rule, token by token.
func naive(pattern, topic []string) bool {
	switch {
	case len(pattern) == 0 || len(topic) == 0:
		return len(pattern) == len(topic)
	case pattern[0] == ">":
		return true
	case pattern[0] != "*" && pattern[0] != topic[0]:
		return false
	}
	return naive(pattern[1:], topic[1:])
}

func matches(pattern, t string) bool {
	return naive(strings.Split(pattern, "."), strings.Split(t, "."))
}

var (
	topics = rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "a-", "bb"}), 1, 4).Draw(t, "tokens"), ".")
	})
	patterns = rapid.Custom(func(t *rapid.T) string {
		tokens := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "*", "*", "a-"}), 0, 4).Draw(t, "tokens")
		if len(tokens) == 0 || rapid.Bool().Draw(t, "rest") {
			tokens = append(tokens, ">")
		}
		return strings.Join(tokens, ".")
	})
)

func TestMatch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, s := patterns.Draw(t, "pattern"), topics.Draw(t, "topic")
		if topic.CheckPattern(p) != nil || topic.Check(s) != nil {
			t.Fatalf("%s, %s are not valid", p, s)
		}
		if got := topic.Match(p, s); got != matches(p, s) {
			t.Fatalf("%s matches %s: %v", p, s, got)
		}
	})
}

// every topic of up to 5 tokens that patterns of up to 4 can tell apart.
var every = func() (all []string) {
	row := []string{""}
	for range 5 {
		var next []string
		for _, s := range row {
			for _, token := range []string{"a", "b", "a-", "other"} {
				next = append(next, strings.TrimPrefix(s+"."+token, "."))
			}
		}
		all, row = append(all, next...), next
	}
	return all
}()

// A pattern covers another one if it matches whatever that matches.
func TestCovers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, q := patterns.Draw(t, "pattern"), patterns.Draw(t, "other")
		want := true
		for _, s := range every {
			want = want && (!matches(q, s) || matches(p, s))
		}
		if got := topic.Covers(p, q); got != want {
			t.Fatalf("%s covers %s: %v, want %v", p, q, got, want)
		}
	})
}

// The index answers as the rule does for each pattern, whatever came, went and was cached.
func TestIndex(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var x topic.Index[int]
		type added struct {
			pattern string
			id      uint64
			value   int
		}
		var model []added
		n := 0
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				p := patterns.Draw(t, "pattern")
				n++
				model = append(model, added{p, x.Add(p, n), n})
			},
			"remove": func(t *rapid.T) {
				if len(model) == 0 {
					t.Skip()
				}
				i := rapid.IntRange(0, len(model)-1).Draw(t, "which")
				if !x.Remove(model[i].pattern, model[i].id) || x.Remove(model[i].pattern, model[i].id) {
					t.Fatalf("%+v is not removed once", model[i])
				}
				model = slices.Delete(model, i, i+1)
			},
			"nothing": func(t *rapid.T) {
				if x.Remove(patterns.Draw(t, "pattern"), uint64(n)+100) {
					t.Fatal("what was never added is removed")
				}
			},
			"": func(t *rapid.T) {
				if x.Len() != len(model) {
					t.Fatalf("%d patterns, want %d", x.Len(), len(model))
				}
				for range 3 {
					s := topics.Draw(t, "topic")
					var want []int
					for _, m := range model {
						if matches(m.pattern, s) {
							want = append(want, m.value)
						}
					}
					for range 2 { // the second time from the cache
						if got := x.Match(s); !slices.Equal(got, want) {
							t.Fatalf("%s: %v, want %v of %+v", s, got, want, model)
						}
					}
				}
			},
		})
	})
}

// The cache is bounded, and what does not fit it is found all the same.
func TestIndexCacheIsBounded(t *testing.T) {
	var x topic.Index[int]
	for i := range 300 {
		x.Add("a.>", i)
	}
	for i := range 10_000 {
		if got := x.Match(fmt.Sprintf("a.%d", i)); len(got) != 300 {
			t.Fatalf("%d of 300", len(got))
		}
		if topics, values := topic.Cached(&x); topics > 4096 || values > 1<<16 {
			t.Fatalf("%d topics, %d values", topics, values)
		}
	}
	for i := range 1 << 16 {
		x.Add("b", i)
	}
	if got := x.Match("b"); len(got) != 1<<16 {
		t.Errorf("%d", len(got))
	}
	x.Add("b", -1)
	if got := x.Match("b"); len(got) != 1<<16+1 {
		t.Errorf("%d", len(got))
	}
	if topics, _ := topic.Cached(&x); topics != 0 {
		t.Errorf("%d topics", topics)
	}
}

func TestIndexDoesNotAllocateForWhatItKnows(t *testing.T) {
	var x topic.Index[int]
	x.Add("a.*.c", 1)
	x.Match("a.b.c")
	if n := testing.AllocsPerRun(100, func() { x.Match("a.b.c") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestTree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var x topic.Tree[int]
		model := map[string]int{}
		n := 0
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				s := topics.Draw(t, "topic")
				n++
				x.Put(s, n)
				model[s] = n
			},
			"delete": func(t *rapid.T) {
				s := topics.Draw(t, "topic")
				_, there := model[s]
				if x.Delete(s) != there {
					t.Fatalf("%s: there is %v", s, there)
				}
				delete(model, s)
			},
			"": func(t *rapid.T) {
				s, p := topics.Draw(t, "topic"), patterns.Draw(t, "pattern")
				v, there := model[s]
				if got := x.Get(s); (got != nil) != there || there && *got != v || x.Len() != len(model) {
					t.Fatalf("%s: %v, want %d %v", s, got, v, there)
				}
				after := ""
				if rapid.Bool().Draw(t, "after") {
					after = topics.Draw(t, "cursor")
				}
				var want, got []string
				for s := range model {
					if matches(p, s) && (after == "" || slices.Compare(strings.Split(s, "."), strings.Split(after, ".")) > 0) {
						want = append(want, s)
					}
				}
				slices.SortFunc(want, func(a, b string) int { return slices.Compare(strings.Split(a, "."), strings.Split(b, ".")) })
				most := rapid.IntRange(1, 5).Draw(t, "most")
				x.Match(p, after, func(s string, v *int) bool {
					if *v != model[s] {
						t.Fatalf("%s is %d, want %d", s, *v, model[s])
					}
					got = append(got, s)
					return len(got) < most
				})
				if want = want[:min(len(want), most)]; !slices.Equal(got, want) {
					t.Fatalf("%s after %q: %v, want %v", p, after, got, want)
				}
			},
		})
	})
}

func FuzzCheck(f *testing.F) {
	for _, s := range []string{"a.b", "a.*.>", "$x", "a..b", "\xff", "*.a"} {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, p, s string) {
		if topic.Check(s) == nil && topic.CheckPattern(s) != nil {
			t.Fatalf("%q is a topic and no pattern", s)
		}
		if topic.CheckPattern(p) != nil || topic.Check(s) != nil {
			return
		}
		var x topic.Index[int]
		x.Add(p, 1)
		if want := matches(p, s); topic.Match(p, s) != want || (len(x.Match(s)) == 1) != want {
			t.Fatalf("%q matches %q: %v, %v, want %v", p, s, topic.Match(p, s), x.Match(s), want)
		}
	})
}

func BenchmarkMatch(b *testing.B) {
	for _, c := range []struct{ name, pattern string }{{"topics", "orders.%d.paid"}, {"stars", "*.%d.*"}} {
		var x topic.Index[int]
		for i := range 10_000 {
			x.Add(fmt.Sprintf(c.pattern, i), i)
		}
		b.Run(c.name+"/cached", func(b *testing.B) {
			for b.Loop() {
				x.Match("orders.77.paid")
			}
		})
		b.Run(c.name+"/fresh", func(b *testing.B) {
			for b.Loop() {
				topic.Forget(&x)
				x.Match("orders.77.paid")
			}
		})
	}
}
