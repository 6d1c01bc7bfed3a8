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
	turnSeconds
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
	serviceWaiting
	serviceSeconds
	httpRequests
	httpSeconds
	httpOpen
	httpConnections
	httpAccepted
	httpWebSockets
	serviceUp
	serviceFigure
	serviceFigureTotal
	storeBytes
	storeLimit
	storeUp
	storeRecords
	storeWritten
	storeRefused
	storeWaiting
	storeSince
	storeRepeat
	storeCheckpoints
	storeCheckpointBytes
	storePause
	clusterActing
	clusterLease
	clusterMembers
	clusterRenewals
	clusterUp
	clusterSeconds
	clusterEvents
	clusterLost
	linkMessages
	linkBytes
	linkAgain
	linkRefused
	linkQueue
	shardsOwned
	shardsMoving
	shardsWaiting
	shardsKeys
	shardsMoves
	shardsStolen
	remoteChildren
	remoteRequests
	journalRecords
	journalBytes
	journalKeys
	journalKept
	journalWaiting
	journalSeconds
	journalUsed
	journalLimit
	journalLoaded
	journalHeld
	scrapeSeconds
	goRoutines
	processCPU
	processMemory
	processAnonymous
	processFDs
	processMaxFDs
	numInfos
)

const (
	byType  = "type"
	byActor = "actors"
	traced  = "tracing"
	process = "process"
	granted = "grants"
	served  = "services"
	outside = "gateway"
	kept    = "store"

	clustered = "cluster"
)

var infos = [numInfos]Info{
	buildInfo:            {"wasmactors_build_info", exposition.Gauge, []string{"system", "bundle", "version", "goversion"}, "Always 1; the labels say what runs.", ""},
	startTime:            {"wasmactors_start_time_seconds", exposition.Gauge, nil, "When the system was started, in seconds since 1970.", ""},
	ready:                {"wasmactors_ready", exposition.Gauge, nil, "1 if all top-level actors have started and the system is not stopping, else 0.", ""},
	actors:               {"wasmactors_actors", exposition.Gauge, []string{byType}, "Living actors.", ""},
	actorsAsleep:         {"wasmactors_actors_asleep", exposition.Gauge, []string{byType}, "Idle guests that have released their instances.", ""},
	actorsIn:             {"wasmactors_actors_in_state", exposition.Gauge, []string{"state"}, "Living actors by what they are doing.", ""},
	actorsLimit:          {"wasmactors_actors_limit", exposition.Gauge, nil, "Most actors at a time; 0: no limit.", ""},
	turns:                {"wasmactors_turns_total", exposition.Counter, []string{byType}, "Turns: messages handled.", ""},
	crashes:              {"wasmactors_crashes_total", exposition.Counter, []string{byType}, "Failed turns and starts.", ""},
	restarts:             {"wasmactors_restarts_total", exposition.Counter, []string{byType}, "Restarts after failures or by operators.", ""},
	fuel:                 {"wasmactors_fuel_total", exposition.Counter, []string{byType}, "Fuel spent by guests, about a wasm instruction each.", ""},
	turnSeconds:          {"wasmactors_turn_seconds", exposition.Histogram, []string{byType}, "How long turns took, a sample of about one in 127.", ""},
	mailboxMessages:      {"wasmactors_mailbox_messages", exposition.Gauge, []string{byType}, "Messages waiting in mailboxes.", ""},
	mailboxBytes:         {"wasmactors_mailbox_bytes", exposition.Gauge, nil, "Bytes of the messages waiting in all mailboxes.", ""},
	mailboxOldest:        {"wasmactors_mailbox_oldest_seconds", exposition.Gauge, nil, "Age of the oldest waiting message (a lower bound); 0: none waits.", ""},
	heldBytes:            {"wasmactors_held_bytes", exposition.Gauge, []string{byType}, "Bytes that the host holds for actors.", ""},
	systemHeld:           {"wasmactors_system_held_bytes", exposition.Gauge, nil, "Bytes that the host holds for all actors, as accounted.", ""},
	systemHeldLimit:      {"wasmactors_system_held_limit_bytes", exposition.Gauge, nil, "Most bytes that the host may hold for all actors; 0: no limit.", ""},
	deadLetters:          {"wasmactors_dead_letters_total", exposition.Counter, []string{"reason"}, "Messages that were not delivered.", ""},
	workers:              {"wasmactors_workers", exposition.Gauge, nil, "Turns that run at a time.", ""},
	actorIncarnation:     {"wasmactors_actor_incarnation", exposition.Gauge, []string{"path", byType}, "Number of the incarnation, from 0.", byActor},
	actorTurns:           {"wasmactors_actor_turns_total", exposition.Counter, []string{"path", byType}, "Turns of the actor.", byActor},
	actorCrashes:         {"wasmactors_actor_crashes_total", exposition.Counter, []string{"path", byType}, "Failed turns and starts of the actor.", byActor},
	actorRestarts:        {"wasmactors_actor_restarts_total", exposition.Counter, []string{"path", byType}, "Restarts of the actor.", byActor},
	actorFuel:            {"wasmactors_actor_fuel_total", exposition.Counter, []string{"path", byType}, "Fuel that the actor has spent.", byActor},
	actorMailbox:         {"wasmactors_actor_mailbox_messages", exposition.Gauge, []string{"path", byType}, "Messages in the actor's mailbox.", byActor},
	actorOldest:          {"wasmactors_actor_mailbox_oldest_seconds", exposition.Gauge, []string{"path", byType}, "Age of the actor's oldest waiting message (a lower bound).", byActor},
	actorHeld:            {"wasmactors_actor_held_bytes", exposition.Gauge, []string{"path", byType}, "Bytes that the host holds for the actor.", byActor},
	spans:                {"wasmactors_trace_spans_total", exposition.Counter, nil, "Spans that were recorded.", traced},
	spansDropped:         {"wasmactors_trace_spans_dropped_total", exposition.Counter, []string{"reason"}, "Spans dropped by the per-trace or the rate limit.", traced},
	traces:               {"wasmactors_traces", exposition.Gauge, nil, "Traces in progress.", traced},
	guestRefusals:        {guests.RefusedName, exposition.Counter, []string{"actor"}, guests.RefusedHelp, granted},
	serviceRequests:      {"wasmactors_service_requests_total", exposition.Counter, []string{"service", "op", "code"}, "Requests of actors that a service has completed; code is ok or the error's code.", served},
	serviceUp:            {"wasmactors_service_up", exposition.Gauge, []string{"service"}, "1 if the service is running, 0 while it restarts after a failure.", served},
	serviceFigure:        {"wasmactors_service_figure", exposition.Gauge, []string{"service", "figure"}, "What a service counts of its own, as it is now: connections_open of tcp, sockets_open of udp, streams_open of flow.", served},
	serviceFigureTotal:   {"wasmactors_service_figure_total", exposition.Counter, []string{"service", "figure"}, "What a service has counted of its own: connections, bytes and datagrams of tcp and udp, streams and elements of flow.", served},
	serviceOpen:          {"wasmactors_service_requests_open", exposition.Gauge, []string{"service"}, "Requests in progress in a service.", served},
	serviceWaiting:       {"wasmactors_service_requests_waiting", exposition.Gauge, []string{"service"}, "Requests that wait for room in their grant (at-once).", served},
	serviceSeconds:       {"wasmactors_service_request_seconds", exposition.Histogram, []string{"service", "op"}, "Time from when a service takes an actor's request until it answers.", served},
	httpRequests:         {"wasmactors_http_requests_total", exposition.Counter, []string{"route", "status"}, "Completed requests from outside, by route pattern; status 499: the client closed the connection first.", outside},
	httpSeconds:          {"wasmactors_http_request_seconds", exposition.Histogram, []string{"route"}, "How long requests from outside took, without WebSockets and event streams.", outside},
	httpOpen:             {"wasmactors_http_requests_open", exposition.Gauge, nil, "Requests from outside in progress, with streams and WebSockets.", outside},
	httpConnections:      {"wasmactors_http_connections", exposition.Gauge, nil, "Connections from outside, without WebSockets.", outside},
	httpAccepted:         {"wasmactors_http_connections_total", exposition.Counter, nil, "Connections from outside that were accepted.", outside},
	httpWebSockets:       {"wasmactors_http_websockets", exposition.Gauge, nil, "Open WebSockets.", outside},
	storeBytes:           {"wasmactors_store_bytes", exposition.Gauge, nil, "Bytes of the files of the store of durable actors.", kept},
	storeLimit:           {"wasmactors_store_limit_bytes", exposition.Gauge, nil, "Most bytes of these files; messages are refused when three quarters are used.", kept},
	storeUp:              {"wasmactors_store_up", exposition.Gauge, nil, "1 if durable actors can go on, 0 if the store is full or has failed.", kept},
	storeRecords:         {"wasmactors_store_records_total", exposition.Counter, nil, "Records written.", kept},
	storeWritten:         {"wasmactors_store_written_bytes_total", exposition.Counter, nil, "Bytes of records written.", kept},
	storeRefused:         {"wasmactors_store_refused_total", exposition.Counter, nil, "Messages to durable actors refused because the store was full, busy or broken.", kept},
	storeWaiting:         {"wasmactors_store_waiting_bytes", exposition.Gauge, nil, "Bytes that leave durable actors once they are on the disk.", kept},
	storeSince:           {"wasmactors_store_since_checkpoint_bytes", exposition.Gauge, nil, "Bytes of records since the last checkpoint.", kept},
	storeRepeat:          {"wasmactors_store_repeat_seconds", exposition.Gauge, nil, "How long a start would take to repeat these records, about.", kept},
	storeCheckpoints:     {"wasmactors_store_checkpoints_total", exposition.Counter, []string{"result"}, "Checkpoints: made, or failed because the actors did not rest in time or for lack of room.", kept},
	storeCheckpointBytes: {"wasmactors_store_checkpoint_bytes", exposition.Gauge, nil, "Bytes of the last checkpoint.", kept},
	storePause:           {"wasmactors_store_checkpoint_pause_seconds", exposition.Gauge, nil, "How long durable actors rested for the last checkpoint.", kept},
	clusterActing:        {"wasmactors_cluster_acting", exposition.Gauge, nil, "1 while the node may act: its lease is not over.", clustered},
	clusterLease:         {"wasmactors_cluster_lease_left_seconds", exposition.Gauge, nil, "How long the node may still act if it cannot renew its lease; 0: it must not act.", clustered},
	clusterMembers:       {"wasmactors_cluster_members", exposition.Gauge, nil, "Nodes that are there, as this one sees it, with itself.", clustered},
	clusterRenewals:      {"wasmactors_cluster_renewals_total", exposition.Counter, []string{"result"}, "Renewals of the lease: confirmed, or failed because the directory did not answer.", clustered},
	clusterUp:            {"wasmactors_cluster_directory_up", exposition.Gauge, nil, "1 if the directory has confirmed the last change, 0 if it has not: a majority of those that keep it may be lost.", clustered},
	clusterSeconds:       {"wasmactors_cluster_directory_seconds", exposition.Histogram, nil, "How long changes of the directory took until they were confirmed or refused.", clustered},
	clusterEvents:        {"wasmactors_cluster_events_total", exposition.Counter, []string{"event"}, "What has happened between nodes: joined, gone, evicted, refused packets, gaps, pairs that began anew.", clustered},
	clusterLost:          {"wasmactors_cluster_messages_lost_total", exposition.Counter, nil, "Messages and signals for nodes that were lost, or whose pair began anew, before they were confirmed.", clustered},
	linkMessages:         {"wasmactors_cluster_link_messages_total", exposition.Counter, []string{"node", "direction"}, "Messages and signals to a node (sent) and from it (received).", clustered},
	linkBytes:            {"wasmactors_cluster_link_bytes_total", exposition.Counter, []string{"node", "direction"}, "Bytes of these messages.", clustered},
	linkAgain:            {"wasmactors_cluster_link_resent_total", exposition.Counter, []string{"node"}, "Messages, or parts of large ones, that were sent again to a node.", clustered},
	linkRefused:          {"wasmactors_cluster_link_refused_total", exposition.Counter, []string{"node"}, "Messages to a node that were refused because too much waits for it.", clustered},
	linkQueue:            {"wasmactors_cluster_link_queue_bytes", exposition.Gauge, []string{"node"}, "Bytes that wait for a node, or are under way to it and not confirmed.", clustered},
	shardsOwned:          {"wasmactors_cluster_shards_owned", exposition.Gauge, []string{"kind"}, "Shards that are on this node.", clustered},
	shardsMoving:         {"wasmactors_cluster_shards_moving", exposition.Gauge, []string{"kind"}, "Shards that are about to move, on all nodes.", clustered},
	shardsWaiting:        {"wasmactors_cluster_shard_messages_waiting", exposition.Gauge, []string{"kind"}, "Messages that wait here for shards that move.", clustered},
	shardsKeys:           {"wasmactors_cluster_keys", exposition.Gauge, []string{"kind"}, "Keys that have an actor on this node.", clustered},
	shardsMoves:          {"wasmactors_cluster_moves_total", exposition.Counter, []string{"kind", "result"}, "Shards that this node has begun (in), has handed over (out), or could not hand over (given up).", clustered},
	shardsStolen:         {"wasmactors_cluster_shards_stolen_total", exposition.Counter, []string{"kind"}, "Shards of this node that a table has given to others without it; they were kept, and the table was written again.", clustered},
	remoteChildren:       {"wasmactors_cluster_children", exposition.Gauge, nil, "Children of actors of other nodes that are here.", clustered},
	remoteRequests:       {"wasmactors_cluster_children_total", exposition.Counter, []string{"result"}, "Requests of other nodes for children here: started, or refused.", clustered},
	journalRecords:       {"wasmactors_cluster_journal_records_total", exposition.Counter, []string{"result"}, "Records of keys' events: confirmed, fenced (the shard is another's), whole (a key was written anew), crowded (no room in memory).", clustered},
	journalBytes:         {"wasmactors_cluster_journal_bytes_total", exposition.Counter, nil, "Bytes of the records that were confirmed.", clustered},
	journalKeys:          {"wasmactors_cluster_journal_keys", exposition.Gauge, nil, "Keys that keep events and live on this node.", clustered},
	journalKept:          {"wasmactors_cluster_journal_memory_bytes", exposition.Gauge, nil, "Bytes of events and snapshots of these keys, in memory; at most 512 MiB.", clustered},
	journalWaiting:       {"wasmactors_cluster_journal_waiting_bytes", exposition.Gauge, nil, "Bytes of records that are not confirmed yet.", clustered},
	journalSeconds:       {"wasmactors_cluster_journal_seconds", exposition.Histogram, nil, "How long records took until they were confirmed.", clustered},
	journalUsed:          {"wasmactors_cluster_journal_used_bytes", exposition.Gauge, nil, "Bytes of the bundle's journal, on each node that keeps it.", clustered},
	journalLimit:         {"wasmactors_cluster_journal_limit_bytes", exposition.Gauge, nil, "How many it may have.", clustered},
	journalLoaded:        {"wasmactors_cluster_journal_loaded_total", exposition.Counter, nil, "Keys that were read from the journal.", clustered},
	journalHeld:          {"wasmactors_cluster_journal_held_total", exposition.Counter, nil, "Turns that stored nothing and waited until the node had renewed its lease.", clustered},
	scrapeSeconds:        {"wasmactors_scrape_duration_seconds", exposition.Gauge, nil, "How long it took to collect these figures.", ""},
	goRoutines:           {"go_goroutines", exposition.Gauge, nil, "Goroutines of the process.", process},
	processCPU:           {"process_cpu_seconds_total", exposition.Counter, nil, "Processor time of the process, in seconds.", process},
	processMemory:        {"process_resident_memory_bytes", exposition.Gauge, nil, "Resident memory of the process. Pages of images that guests share count for each guest that has read them.", process},
	processAnonymous:     {"wasmactors_process_anonymous_bytes", exposition.Gauge, nil, "Private resident memory of the process: Go's heap and pages that guests have written to.", process},
	processFDs:           {"process_open_fds", exposition.Gauge, nil, "Open file descriptors of the process.", process},
	processMaxFDs:        {"process_max_fds", exposition.Gauge, nil, "How many file descriptors the process may open.", process},
}

// Table describes all metrics of the host's.
func Table() []Info { return append([]Info(nil), infos[:]...) }

func (i *Info) family(n int) exposition.Family {
	return exposition.Family{Name: i.Name, Help: i.Help, Kind: i.Kind, Series: make([]exposition.Series, 0, n)}
}
