package metrics

import (
	"github.com/wasmactors/wasmactors/host/metrics/exposition"
	"github.com/wasmactors/wasmactors/host/metrics/guests"
)

// Info describes a metric of the host. docs/metrics.md lists them all; a test compares.
type Info struct {
	Name   string
	Kind   exposition.Kind
	Labels []string
	Help   string
	Choice string // the option that it needs, "" for none
}

// The metrics, in the order in which they are shown.
const (
	buildInfo = iota
	startTime
	ready
	actors
	actorsAsleep
	actorsIn
	actorsLimit
	turns
	crashes
	restarts
	fuel
	mailboxMessages
	mailboxBytes
	mailboxOldest
	heldBytes
	systemHeld
	systemHeldLimit
	deadLetters
	workers
	actorIncarnation
	actorTurns
	actorCrashes
	actorRestarts
	actorFuel
	actorMailbox
	actorOldest
	actorHeld
	spans
	spansDropped
	traces
	guestRefusals
	serviceRequests
	serviceOpen
	scrapeSeconds
	goRoutines
	processCPU
	processMemory
	numInfos
)

const (
	byType  = "type"
	byActor = "actors"
	traced  = "tracing"
	process = "process"
	granted = "grants"
	served  = "services"
)

var infos = [numInfos]Info{
	buildInfo:        {"wasmactors_build_info", exposition.Gauge, []string{"system", "bundle", "version", "goversion"}, "1, with what runs.", ""},
	startTime:        {"wasmactors_start_time_seconds", exposition.Gauge, nil, "When the system was started, in seconds since 1970.", ""},
	ready:            {"wasmactors_ready", exposition.Gauge, nil, "1 if every top-level actor has begun and the system does not end, else 0.", ""},
	actors:           {"wasmactors_actors", exposition.Gauge, []string{byType}, "Living actors.", ""},
	actorsAsleep:     {"wasmactors_actors_asleep", exposition.Gauge, []string{byType}, "Idle guests that have given their instances back.", ""},
	actorsIn:         {"wasmactors_actors_in_state", exposition.Gauge, []string{"state"}, "Living actors by what they are doing.", ""},
	actorsLimit:      {"wasmactors_actors_limit", exposition.Gauge, nil, "How many actors there may be; 0: no bound.", ""},
	turns:            {"wasmactors_turns_total", exposition.Counter, []string{byType}, "Turns, which are messages handled.", ""},
	crashes:          {"wasmactors_crashes_total", exposition.Counter, []string{byType}, "Turns and starts that have failed.", ""},
	restarts:         {"wasmactors_restarts_total", exposition.Counter, []string{byType}, "Incarnations that have followed a failure or an order.", ""},
	fuel:             {"wasmactors_fuel_total", exposition.Counter, []string{byType}, "Fuel spent by guests, about a wasm instruction each.", ""},
	mailboxMessages:  {"wasmactors_mailbox_messages", exposition.Gauge, []string{byType}, "Messages that wait.", ""},
	mailboxBytes:     {"wasmactors_mailbox_bytes", exposition.Gauge, nil, "Bytes of messages that wait, of all actors.", ""},
	mailboxOldest:    {"wasmactors_mailbox_oldest_seconds", exposition.Gauge, nil, "How long the oldest waiting message has waited at least; 0: none waits.", ""},
	heldBytes:        {"wasmactors_held_bytes", exposition.Gauge, []string{byType}, "Bytes that the host holds for actors.", ""},
	systemHeld:       {"wasmactors_system_held_bytes", exposition.Gauge, nil, "Bytes that the host holds for all actors, as accounted.", ""},
	systemHeldLimit:  {"wasmactors_system_held_limit_bytes", exposition.Gauge, nil, "What it may hold; 0: no bound.", ""},
	deadLetters:      {"wasmactors_dead_letters_total", exposition.Counter, []string{"reason"}, "Messages that were not delivered.", ""},
	workers:          {"wasmactors_workers", exposition.Gauge, nil, "Turns that run at a time.", ""},
	actorIncarnation: {"wasmactors_actor_incarnation", exposition.Gauge, []string{"path", byType}, "Number of the incarnation, from 0.", byActor},
	actorTurns:       {"wasmactors_actor_turns_total", exposition.Counter, []string{"path", byType}, "Turns of the actor.", byActor},
	actorCrashes:     {"wasmactors_actor_crashes_total", exposition.Counter, []string{"path", byType}, "Turns and starts of the actor that have failed.", byActor},
	actorRestarts:    {"wasmactors_actor_restarts_total", exposition.Counter, []string{"path", byType}, "Restarts of the actor.", byActor},
	actorFuel:        {"wasmactors_actor_fuel_total", exposition.Counter, []string{"path", byType}, "Fuel that the actor has spent.", byActor},
	actorMailbox:     {"wasmactors_actor_mailbox_messages", exposition.Gauge, []string{"path", byType}, "Messages that wait for the actor.", byActor},
	actorOldest:      {"wasmactors_actor_mailbox_oldest_seconds", exposition.Gauge, []string{"path", byType}, "How long the oldest of them has waited at least.", byActor},
	actorHeld:        {"wasmactors_actor_held_bytes", exposition.Gauge, []string{"path", byType}, "Bytes that the host holds for the actor.", byActor},
	spans:            {"wasmactors_trace_spans_total", exposition.Counter, nil, "Spans that were recorded.", traced},
	spansDropped:     {"wasmactors_trace_spans_dropped_total", exposition.Counter, []string{"reason"}, "Spans that were not recorded for a bound: of their trace, or of the rate.", traced},
	traces:           {"wasmactors_traces", exposition.Gauge, nil, "Traces that are remembered as under way.", traced},
	guestRefusals:    {guests.RefusedName, exposition.Counter, []string{"actor"}, guests.RefusedHelp, granted},
	serviceRequests:  {"wasmactors_service_requests_total", exposition.Counter, []string{"service", "op", "code"}, "Requests of actors that a service has ended; code is ok, or that of the error.", served},
	serviceOpen:      {"wasmactors_service_requests_open", exposition.Gauge, []string{"service"}, "Requests that a service works on.", served},
	scrapeSeconds:    {"wasmactors_scrape_duration_seconds", exposition.Gauge, nil, "How long it took to collect these figures.", ""},
	goRoutines:       {"go_goroutines", exposition.Gauge, nil, "Goroutines of the process.", process},
	processCPU:       {"process_cpu_seconds_total", exposition.Counter, nil, "Processor time of the process, in seconds.", process},
	processMemory:    {"process_resident_memory_bytes", exposition.Gauge, nil, "Resident memory of the process.", process},
}

// Table describes all metrics of the host's.
func Table() []Info { return append([]Info(nil), infos[:]...) }

func (i *Info) family(n int) exposition.Family {
	return exposition.Family{Name: i.Name, Help: i.Help, Kind: i.Kind, Series: make([]exposition.Series, 0, n)}
}
