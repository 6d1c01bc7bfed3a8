package typed

import (
	"bytes"
	"fmt"
	"reflect"

	"github.com/wasmactors/wasmactors/host"
)

// Verify reports, for tests, whether what is sent of a value reads back as the same value by its own type. It is
// what actortest.SerializeMessages does for the messages of guests.
func Verify(v any) error {
	sent, err := host.Encode(v)
	if err != nil {
		return err
	}
	t := reflect.TypeOf(v)
	if t == nil {
		return nil
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	again := reflect.New(t)
	if err := (host.Message{Payload: sent}).Decode(again.Interface()); err != nil {
		return fmt.Errorf("typed: %T cannot read what it has written: %w", v, err)
	}
	read := again.Interface()
	if reflect.TypeOf(v).Kind() != reflect.Pointer {
		read = again.Elem().Interface()
	}
	back, err := host.Encode(read)
	if err != nil {
		return err
	}
	if !bytes.Equal(back, sent) {
		return fmt.Errorf("typed: %T is sent as %x, and is %x when it was read", v, sent, back)
	}
	return nil
}
