package observe

import "strconv"

// MarshalJSON implements json.Marshaler: the event's own JSON, and "number".
func (e Event) MarshalJSON() ([]byte, error) {
	text, err := e.Event.MarshalJSON()
	if err != nil {
		return nil, err
	}
	out := make([]byte, 0, len(text)+32)
	out = strconv.AppendUint(append(out, `{"number":`...), e.Number, 10)
	return append(append(out, ','), text[1:]...), nil // an event's object is never empty
}
