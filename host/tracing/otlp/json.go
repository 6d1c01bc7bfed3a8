package otlp

import (
	"encoding/hex"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	otellog "go.opentelemetry.io/otel/log"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// The JSON encoding of OTLP 1.9: that of protocol buffers, except for IDs, which are
// hexadecimal, and enums, which are numbers. A test reads it back with the protocol's own
// types. Whole numbers of 64 bits are texts.

type number uint64

func (n number) MarshalJSON() ([]byte, error) {
	return append(strconv.AppendUint([]byte{'"'}, uint64(n), 10), '"'), nil
}

func nanos(t time.Time) number {
	if t.IsZero() {
		return 0
	}
	return number(max(t.UnixNano(), 0))
}

type value struct {
	String *string  `json:"stringValue,omitempty"`
	Bool   *bool    `json:"boolValue,omitempty"`
	Int    *string  `json:"intValue,omitempty"`
	Double *float64 `json:"doubleValue,omitempty"`
	Array  *array   `json:"arrayValue,omitempty"`
	Map    *fields  `json:"kvlistValue,omitempty"`
}

type array struct {
	Values []value `json:"values"`
}

type fields struct {
	Values []field `json:"values"`
}

type field struct {
	Key   string `json:"key"`
	Value value  `json:"value"`
}

type scope struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
}

type resourceJSON struct {
	Attributes []field `json:"attributes"`
}

type traces struct {
	Resources []resourceSpans `json:"resourceSpans"`
}

type resourceSpans struct {
	Resource resourceJSON `json:"resource"`
	Scopes   []scopeSpans `json:"scopeSpans"`
}

type scopeSpans struct {
	Scope scope      `json:"scope"`
	Spans []spanJSON `json:"spans"`
}

type spanJSON struct {
	TraceID    string  `json:"traceId"`
	SpanID     string  `json:"spanId"`
	TraceState string  `json:"traceState,omitempty"`
	Parent     string  `json:"parentSpanId,omitempty"`
	Flags      uint32  `json:"flags"`
	Name       string  `json:"name"`
	Kind       int     `json:"kind"`
	Start      number  `json:"startTimeUnixNano"`
	End        number  `json:"endTimeUnixNano"`
	Attributes []field `json:"attributes,omitempty"`
	LessAttrs  int     `json:"droppedAttributesCount,omitempty"`
	Events     []event `json:"events,omitempty"`
	LessEvents int     `json:"droppedEventsCount,omitempty"`
	Links      []link  `json:"links,omitempty"`
	LessLinks  int     `json:"droppedLinksCount,omitempty"`
	Status     *status `json:"status,omitempty"`
}

type event struct {
	Time       number  `json:"timeUnixNano"`
	Name       string  `json:"name"`
	Attributes []field `json:"attributes,omitempty"`
}

type link struct {
	TraceID    string  `json:"traceId"`
	SpanID     string  `json:"spanId"`
	Attributes []field `json:"attributes,omitempty"`
}

type status struct {
	Message string `json:"message,omitempty"`
	Code    int    `json:"code"`
}

// spansOf is a batch of spans as OTLP encodes it. All spans of a provider have one resource.
func spansOf(spans []sdktrace.ReadOnlySpan) traces {
	if len(spans) == 0 {
		return traces{}
	}
	by := map[instrumentation.Scope]int{}
	rs := resourceSpans{Resource: resourceOf(spans[0].Resource())}
	for _, s := range spans {
		sc := s.InstrumentationScope()
		key := instrumentation.Scope{Name: sc.Name, Version: sc.Version}
		at, ok := by[key]
		if !ok {
			at = len(rs.Scopes)
			by[key] = at
			rs.Scopes = append(rs.Scopes, scopeSpans{Scope: scope{sc.Name, sc.Version}})
		}
		rs.Scopes[at].Spans = append(rs.Scopes[at].Spans, spanOf(s))
	}
	return traces{[]resourceSpans{rs}}
}

func spanOf(s sdktrace.ReadOnlySpan) spanJSON {
	at := s.SpanContext()
	j := spanJSON{
		TraceID: at.TraceID().String(), SpanID: at.SpanID().String(), TraceState: at.TraceState().String(), Flags: uint32(at.TraceFlags()),
		Name: s.Name(), Kind: kindOf(s.SpanKind()), Start: nanos(s.StartTime()), End: nanos(s.EndTime()),
		Attributes: fieldsOf(s.Attributes()), LessAttrs: s.DroppedAttributes(), LessEvents: s.DroppedEvents(), LessLinks: s.DroppedLinks(),
	}
	if p := s.Parent(); p.HasSpanID() {
		j.Parent = p.SpanID().String()
	}
	for _, e := range s.Events() {
		j.Events = append(j.Events, event{nanos(e.Time), e.Name, fieldsOf(e.Attributes)})
	}
	for _, l := range s.Links() {
		j.Links = append(j.Links, link{l.SpanContext.TraceID().String(), l.SpanContext.SpanID().String(), fieldsOf(l.Attributes)})
	}
	switch st := s.Status(); st.Code {
	case codes.Ok:
		j.Status = &status{Code: 1}
	case codes.Error:
		j.Status = &status{st.Description, 2}
	}
	return j
}

func kindOf(k trace.SpanKind) int {
	switch k {
	case trace.SpanKindInternal:
		return 1
	case trace.SpanKindServer:
		return 2
	case trace.SpanKindClient:
		return 3
	case trace.SpanKindProducer:
		return 4
	case trace.SpanKindConsumer:
		return 5
	}
	return 0
}

func resourceOf(r *resource.Resource) resourceJSON {
	return resourceJSON{fieldsOf(r.Attributes())}
}

func fieldsOf(attributes []attribute.KeyValue) []field {
	var out []field
	for _, a := range attributes {
		out = append(out, field{string(a.Key), valueOf(a.Value)})
	}
	return out
}

func valueOf(v attribute.Value) value {
	switch v.Type() {
	case attribute.BOOL:
		b := v.AsBool()
		return value{Bool: &b}
	case attribute.INT64:
		return intValue(v.AsInt64())
	case attribute.FLOAT64:
		return floatValue(v.AsFloat64())
	case attribute.STRINGSLICE:
		var a array
		for _, s := range v.AsStringSlice() {
			a.Values = append(a.Values, value{String: &s})
		}
		return value{Array: &a}
	}
	s := v.Emit()
	return value{String: &s}
}

func intValue(n int64) value {
	text := strconv.FormatInt(n, 10)
	return value{Int: &text}
}

// floatValue writes a number that JSON does not have as a text, so that it is at least visible.
func floatValue(f float64) value {
	if f-f != 0 {
		text := strconv.FormatFloat(f, 'g', -1, 64)
		return value{String: &text}
	}
	return value{Double: &f}
}

type logs struct {
	Resources []resourceLogs `json:"resourceLogs"`
}

type resourceLogs struct {
	Resource resourceJSON `json:"resource"`
	Scopes   []scopeLogs  `json:"scopeLogs"`
}

type scopeLogs struct {
	Scope   scope     `json:"scope"`
	Records []logJSON `json:"logRecords"`
}

type logJSON struct {
	Time       number  `json:"timeUnixNano"`
	Observed   number  `json:"observedTimeUnixNano"`
	Severity   int     `json:"severityNumber,omitempty"`
	Level      string  `json:"severityText,omitempty"`
	Body       value   `json:"body"`
	Attributes []field `json:"attributes,omitempty"`
	LessAttrs  int     `json:"droppedAttributesCount,omitempty"`
	Flags      uint32  `json:"flags,omitempty"`
	TraceID    string  `json:"traceId,omitempty"`
	SpanID     string  `json:"spanId,omitempty"`
}

// logsOf is a batch of log records as OTLP encodes it.
func logsOf(records []sdklog.Record) logs {
	if len(records) == 0 {
		return logs{}
	}
	first := &records[0]
	out := scopeLogs{Scope: scope{first.InstrumentationScope().Name, first.InstrumentationScope().Version}}
	for i := range records {
		r := &records[i]
		j := logJSON{
			Time: nanos(r.Timestamp()), Observed: nanos(r.ObservedTimestamp()), Severity: int(r.Severity()), Level: r.SeverityText(),
			Body: logValue(r.Body()), LessAttrs: r.DroppedAttributes(),
		}
		r.WalkAttributes(func(kv otellog.KeyValue) bool {
			j.Attributes = append(j.Attributes, field{kv.Key, logValue(kv.Value)})
			return true
		})
		if id := r.TraceID(); id.IsValid() {
			span := r.SpanID()
			j.TraceID, j.SpanID, j.Flags = id.String(), span.String(), uint32(r.TraceFlags())
		}
		out.Records = append(out.Records, j)
	}
	return logs{[]resourceLogs{{resourceOf(first.Resource()), []scopeLogs{out}}}}
}

func logValue(v otellog.Value) value {
	switch v.Kind() {
	case otellog.KindBool:
		b := v.AsBool()
		return value{Bool: &b}
	case otellog.KindInt64:
		return intValue(v.AsInt64())
	case otellog.KindFloat64:
		return floatValue(v.AsFloat64())
	case otellog.KindBytes:
		text := hex.EncodeToString(v.AsBytes())
		return value{String: &text}
	case otellog.KindSlice:
		var a array
		for _, x := range v.AsSlice() {
			a.Values = append(a.Values, logValue(x))
		}
		return value{Array: &a}
	case otellog.KindMap:
		var m fields
		for _, x := range v.AsMap() {
			m.Values = append(m.Values, field{x.Key, logValue(x.Value)})
		}
		return value{Map: &m}
	}
	s := v.String()
	if v.Kind() == otellog.KindString {
		s = v.AsString()
	}
	return value{String: &s}
}
