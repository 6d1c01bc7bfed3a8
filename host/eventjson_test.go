package host

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/message"
)

// hostileText has what terminals act upon: an escape sequence, C1 controls, DEL, a carriage
// return, bidirectional controls, a line separator, a tag.
const hostileText = "a\x1b[2J\x1b]0;t\a\u009b31m\u0085\x7f\r\u202eb\u2066c\u200f\u2028\U000e0041\ufeffz"

func reachesTerminal(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool {
		return r != '\n' && r != '\t' && (unicode.In(r, unicode.Cc, unicode.Bidi_Control, unicode.Zl, unicode.Zp) || r >= 0xe0000 && r < 0xe0080 || r == 0xfeff)
	})
}

// fillTexts sets every text in v, and makes what pointers point to.
func fillTexts(v reflect.Value, text string) (texts int) {
	switch v.Kind() {
	case reflect.String:
		if v.CanSet() {
			v.SetString(text)
			return 1
		}
	case reflect.Pointer:
		if v.CanSet() && v.Type().Elem().Kind() == reflect.Struct && v.Type() != reflect.TypeFor[*time.Location]() {
			v.Set(reflect.New(v.Type().Elem()))
			return fillTexts(v.Elem(), text)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				texts += fillTexts(v.Field(i), text)
			}
		}
	case reflect.Slice:
		switch {
		case v.CanSet() && v.Type().Elem().Kind() == reflect.String:
			v.Set(reflect.ValueOf([]string{text, text}))
			return 2
		case v.CanSet() && v.Type().Elem().Kind() == reflect.Uint8:
			v.SetBytes(message.AppendText(nil, text)) // CBOR
			return 1
		}
	}
	return texts
}

// TestNoEventReachesATerminal fills every field of every event with what a terminal
// would act upon: as JSON all of it is escaped, and it is still the same text.
func TestNoEventReachesATerminal(t *testing.T) {
	for kind := range EventUnpaused + 1 {
		e := Event{Kind: EventKind(kind)}
		if n := fillTexts(reflect.ValueOf(&e).Elem(), hostileText); n < 10 {
			t.Fatalf("%d texts", n)
		}
		e.Kind = EventKind(kind)
		e.Mail.Size = len(e.Mail.Payload)
		text, err := json.Marshal(e)
		if err != nil || reachesTerminal(string(text)) {
			t.Errorf("%v: %q %v", e.Kind, text, err)
		}
		var back struct {
			Text    string
			Failure struct{ Reason string }
			Message struct{ Payload string }
		}
		if err := json.Unmarshal(text, &back); err != nil || back.Text != hostileText || back.Failure.Reason != hostileText || back.Message.Payload != hostileText {
			t.Errorf("%v: %+q %v", e.Kind, back, err)
		}
	}
}

func TestLevels(t *testing.T) {
	for i, name := range LevelNames() {
		if level, ok := ParseLevel(name); !ok || level != i || LevelName(level) != name {
			t.Errorf("%s: %d %v", name, level, ok)
		}
	}
	if _, ok := ParseLevel("loud"); ok || LevelName(-1) != "debug" || LevelName(99) != "error" || LevelName(abi.LogWarn) != "warn" {
		t.Error("levels outside")
	}
}
